package guest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// A turn is one change of one interface's configuration: a file, how it is activated, and the expected state of the interface.
type turn struct {
	nonce   string // distinguishes the watchdogs of different turns
	system  netconf.System
	nic     netconf.NIC
	slug    string         // names the state of this turn in the guest
	uuid    string         // of the NetworkManager connection
	static  netconf.Static // what content is for
	file    string
	content string // if it and address are "", the file is removed
	missing bool   // the file must not exist
	mode    uint32
	owner   string

	address string   // expected address at the end, backends.DHCP for any address from DHCP, "": none is waited for
	mtu     int      // 0: not set
	back    []string // addresses to add manually
	stale   []string // addresses to remove manually
	down    bool     // the link was down
	table   int      // table for packets from address; 0: none
	rules   []string // rules of policy routing to remove manually: "ADDRESS TABLE"
}

func (t turn) dir() string { return workDir + "/address-" + t.slug + "-" + t.nonce }

// unit returns the name of the watchdog's systemd unit.
func (t turn) unit() string { return "rdma-setup-watch-" + t.nonce }

// confirm returns the script that confirms the change to the watchdog in the guest.
func (t turn) confirm() string { return script("address-confirm.sh", t.dir()) }

// undo returns the script that undoes the change at once.
func (t turn) undo() string { return script("address-undo.sh", t.dir()) }

// end returns the script that ends the watchdog when it is decided whether the change stays.
func (t turn) end() string { return script("address-end.sh", t.dir(), t.unit(), workDir) }

// pending returns a script that prints something while the watchdog may still revert the change, or is doing so.
func (t turn) pending() string {
	return "ls " + ssh.QuoteAll(t.dir()+"/watching", t.dir()+"/undoing") + " 2>/dev/null || :"
}

// stays returns a script that prints something if the file and the interface are as the change makes them, when it is decided whether
// the change stays. Leases and rules are not compared.
func (t turn) stays() string {
	file, nic := ssh.Quote(t.file), ssh.Quote(t.nic.Name)
	has := func(address string) string {
		return "ip -o addr show dev " + nic + " | grep -qF " + ssh.Quote(" "+address+" ")
	}
	is := []string{"[ ! -e " + file + " ]"}
	if !t.removes() {
		is[0] = "[ \"$(cat " + file + " && echo .)\" = " + ssh.Quote(t.content+".") + " ]"
	}
	if t.address != "" && t.address != backends.DHCP {
		is = append(is, has(t.address))
	}
	for _, a := range t.back {
		is = append(is, has(a))
	}
	for _, a := range t.stale {
		is = append(is, "! "+has(a))
	}
	if t.mtu > 0 {
		is = append(is, "[ \"$(cat /sys/class/net/"+nic+"/mtu)\" = "+strconv.Itoa(t.mtu)+" ]")
	}
	return strings.Join(is, " && ") + " && echo stays || :"
}

// removes reports whether the change removes the file.
func (t turn) removes() bool { return t.content == "" && (t.mode == 0 || t.missing) }

// script changes the configuration under a watchdog; see assets/scripts/address-set.sh.
func (t turn) script(watch, settle time.Duration) string {
	mode, owner := "", ""
	if !t.removes() {
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
		looks = 2 // networkd reconfigures after networkctl has ended, and briefly removes what it has just set
	}
	tmp, activate := strings.TrimSuffix(temporaryFiles(t.file), "??????"), t.activate()
	rule := ""
	if a, _, _ := strings.Cut(t.address, "/"); t.table != 0 {
		rule = a + " " + strconv.Itoa(t.table)
	}
	back := script("address-back.sh", t.dir(), t.file, tmp, t.nic.Name, t.address, activate, rule)
	return script("address-set.sh", t.dir(), workDir, t.unit(), assets.Script("address-watch.sh"), seconds(watch), back, t.end(), activate,
		t.file, tmp, mode, owner, t.content, t.nic.Name,
		t.address, strconv.Itoa(t.mtu), strings.Join(t.stale, " "), strings.Join(t.back, " "), down, seconds(settle), strconv.Itoa(looks), rule,
		strings.Join(t.rules, " "))
}

func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d/time.Second))) }

// activate returns the commands that apply the files to the one interface, as far as the system supports that.
func (t turn) activate() string {
	system := map[netconf.System]string{netconf.Netplan: "netplan", netconf.NetworkManager: "nm", netconf.Networkd: "networkd"}[t.system]
	return script("address-activate.sh", system, t.nic.Name, t.file, t.uuid)
}
