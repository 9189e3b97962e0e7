package guest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// A turn is one change of one interface's configuration: a file, what makes it work, and what the interface should have then.
type turn struct {
	nonce   string // keeps the watch of one turn apart from that of the next
	system  netconf.System
	nic     netconf.NIC
	slug    string // names the state of this turn in the guest
	uuid    string // of the NetworkManager connection
	file    string
	content string // "" with an address "" removes the file
	missing bool   // the file must not be there
	mode    uint32
	owner   string

	address string   // that must be there in the end, backends.DHCP for any that DHCP gives, "" when there is none to wait for
	mtu     int      // 0: as it comes
	back    []string // addresses to give back by hand
	stale   []string // addresses to take away by hand
	down    bool     // the link was down
	table   int      // that packets from address must go by; 0: none
	rules   []string // of policy routing, to take away by hand: "ADDRESS TABLE"
}

func (t turn) dir() string { return workDir + "/address-" + t.slug + "-" + t.nonce }

// unit names the watch where systemd runs it.
func (t turn) unit() string { return "rdma-setup-watch-" + t.nonce }

// confirm tells the watch in the guest that all is well.
func (t turn) confirm() string { return script("address-confirm.sh", t.dir(), t.unit(), workDir) }

// pending prints something while the watch may still take the change back, or is at it.
func (t turn) pending() string {
	return "ls " + ssh.QuoteAll(t.dir()+"/watching", t.dir()+"/undoing") + " 2>/dev/null || :"
}

// script changes the configuration under a watch; see assets/scripts/address-set.sh.
func (t turn) script(watch, settle time.Duration) string {
	mode, owner := "", ""
	if t.content != "" || t.mode != 0 && !t.missing {
		bits := t.mode
		if owner = t.owner; bits == 0 {
			bits, owner = uint32(t.system.Mode()), "0:0"
		}
		mode = fmt.Sprintf("%04o", bits)
	}
	down, looks := "", 1
	if t.down {
		down = "down"
	}
	if t.system == netconf.Netplan || t.system == netconf.Networkd {
		looks = 2 // networkd reconfigures when networkctl has ended, and takes for a moment what it has just given
	}
	tmp, activate := strings.TrimSuffix(beside(t.file), "??????"), t.activate()
	rule := ""
	if a, _, _ := strings.Cut(t.address, "/"); t.table != 0 {
		rule = a + " " + strconv.Itoa(t.table)
	}
	back := script("address-back.sh", t.dir(), t.file, tmp, t.nic.Name, t.address, activate, rule)
	return script("address-set.sh", t.dir(), workDir, t.unit(), assets.Script("address-watch.sh"), seconds(watch), back, activate,
		t.file, tmp, mode, owner, t.content, t.nic.Name,
		t.address, strconv.Itoa(t.mtu), strings.Join(t.stale, " "), strings.Join(t.back, " "), down, seconds(settle), strconv.Itoa(looks), rule, strings.Join(t.rules, " "))
}

func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d/time.Second))) }

// activate makes the files work for the one interface, as far as the system can do that for one.
func (t turn) activate() string {
	system := map[netconf.System]string{netconf.Netplan: "netplan", netconf.NetworkManager: "nm", netconf.Networkd: "networkd"}[t.system]
	return script("address-activate.sh", system, t.nic.Name, t.file, t.uuid)
}
