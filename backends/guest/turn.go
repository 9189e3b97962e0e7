package guest

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// A turn is one change of one interface's configuration: a file, what makes it work, and what the interface shall
// have then.
type turn struct {
	nonce   string // keeps the watch of one turn apart from that of the next
	system  netconf.System
	nic     netconf.NIC
	slug    string // names the state of this turn in the guest
	uuid    string // of the NetworkManager connection
	file    string
	content string // "" with an address "" removes the file
	missing bool   // the file shall not be there
	mode    uint32
	owner   string

	address string   // that must be there in the end, "" when there is none to wait for
	mtu     int      // 0: as it comes
	back    []string // addresses to give back by hand
	stale   []string // addresses to take away by hand
	down    bool     // the link was down
}

func (t turn) dir() string { return workDir + "/address-" + t.slug + "-" + t.nonce }

// unit names the watch where systemd runs it.
func (t turn) unit() string { return "rdma-setup-watch-" + t.nonce }

// confirm tells the watch in the guest that all is well. Who takes the file "watching" away decides, the watch or it: a
// change whose taking back has begun is not confirmed any more. Nothing of the watch is left.
func (t turn) confirm() string {
	return fmt.Sprintf("rm %s 2>/dev/null || { echo 'the guest has already taken the change back' >&2; exit 1; }\nsystemctl stop %s 2>/dev/null\nrm -rf -- %s\nrmdir %s 2>/dev/null || :\n",
		ssh.Quote(t.dir()+"/watching"), t.unit(), ssh.Quote(t.dir()), workDir)
}

// pending prints something while the watch may still take the change back, or is at it.
func (t turn) pending() string {
	return "ls " + ssh.QuoteAll(t.dir()+"/watching", t.dir()+"/undoing") + " 2>/dev/null || :"
}

// script takes the file aside, starts the watch, writes, applies and waits for the result. Whatever fails after the
// file was written is taken back at once.
func (t turn) script(watch, settle time.Duration) string {
	d, file := ssh.Quote(t.dir()), ssh.Quote(t.file)
	tmp := ssh.Quote(strings.TrimSuffix(beside(t.file), "??????"))
	write := "rm -f -- " + file + " " + tmp + "??????"
	if t.content != "" || t.mode != 0 && !t.missing {
		mode, owner := t.mode, t.owner
		if mode == 0 {
			mode, owner = uint32(t.system.Mode()), "0:0"
		}
		write = fmt.Sprintf("mkdir -p %[1]s && t=$(mktemp %[3]s) && chmod %04[4]o \"$t\" && chown %[5]s \"$t\" && printf %%s %[2]s >\"$t\" && { sync \"$t\" 2>/dev/null || :; } && mv -f \"$t\" %[6]s",
			ssh.Quote(path.Dir(t.file)), ssh.Quote(t.content), tmp+"XXXXXX", mode, ssh.Quote(owner), file)
	}
	back := "rm -f -- " + tmp + "??????\n" + fmt.Sprintf("if [ -e %s/old ]; then cp -p %[1]s/old %[2]s; else rm -f -- %[2]s; fi\n(\n%s\n)\n", d, file, t.activate())
	if t.address != "" {
		back += fmt.Sprintf("ip addr del %s dev %s 2>/dev/null || :\n", ssh.Quote(t.address), ssh.Quote(t.nic.Name))
	}
	back += fmt.Sprintf("[ -s %[1]s/mtu ] && ip link set dev %[2]s mtu \"$(cat %[1]s/mtu)\"\n[ -s %[1]s/flags ] && [ $(($(cat %[1]s/flags) & 1)) = 0 ] && ip link set dev %[2]s down\nrm -f %[1]s/undoing\n", d, ssh.Quote(t.nic.Name))
	var b strings.Builder
	fmt.Fprintf(&b, "rm -rf -- %s && mkdir -p %[1]s && chmod 700 %[1]s || exit 1\n", d)
	fmt.Fprintf(&b, "if [ -e %s ]; then cp -p %[1]s %s/old || exit 1; fi\n", file, d)
	fmt.Fprintf(&b, "for k in mtu flags; do cat /sys/class/net/%s/$k >%s/$k; done 2>/dev/null\n", ssh.Quote(t.nic.Name), d)
	fmt.Fprintf(&b, "printf %%s %s >%s/back && printf %%s %s >%[2]s/watch && : >%[2]s/watching || exit 1\n", ssh.Quote(back), d, ssh.Quote(assets.Script("address-watch.sh")))
	b.WriteString(watchScript(t.dir(), t.unit(), watch))
	fmt.Fprintf(&b, "undo() { ! mv %s/watching %[1]s/undoing 2>/dev/null || sh %[1]s/back; i=0; while [ -e %[1]s/undoing ] && [ $i -lt 240 ]; do sleep 1; i=$((i + 1)); done; [ ! -e %[1]s/undoing ] || sh %[1]s/back; exit 1; }\n", d)
	fmt.Fprintf(&b, "%s || undo\n", write)
	fmt.Fprintf(&b, "(\n%s\n) || undo\n", t.activate())
	b.WriteString(t.settle(settle))
	return b.String()
}

// watchScript starts the watch, which is patient as long as the script is at work, so that the end of this login does not end it.
func watchScript(dir, unit string, watch time.Duration) string {
	args := ssh.QuoteAll(dir+"/watch") + " $$ " + ssh.QuoteAll(dir, workDir, strconv.Itoa(max(1, int(watch/time.Second))))
	return fmt.Sprintf(`if command -v systemd-run >/dev/null 2>&1 && systemd-run --quiet --unit=%[2]s /bin/sh %[1]s >/dev/null 2>&1; then :
elif command -v setsid >/dev/null 2>&1; then setsid nohup /bin/sh %[1]s >/dev/null 2>&1 </dev/null &
else nohup /bin/sh %[1]s >/dev/null 2>&1 </dev/null &
fi
`, args, unit)
}

// activate makes the files work for the one interface, as far as the system can do that for one.
func (t turn) activate() string {
	nic := ssh.Quote(t.nic.Name)
	limit := "limited() { if command -v timeout >/dev/null 2>&1; then timeout 60 \"$@\"; else \"$@\"; fi; }\n"
	switch t.system {
	case netconf.Netplan:
		// netplan apply goes over every interface and restarts what runs them; networkd can be asked for the one.
		return limit + fmt.Sprintf(`netplan generate || exit 1
d=
for f in /run/systemd/network/10-netplan-*.network; do [ -e "$f" ] && d=networkd; done
if [ "$d" = networkd ] && networkctl reload && { networkctl reconfigure %s || [ ! -e %s ]; }; then :
else limited netplan apply; fi`, nic, ssh.Quote(t.file))
	case netconf.NetworkManager:
		u := ssh.Quote(t.uuid)
		return limit + fmt.Sprintf("nmcli connection reload && { [ ! -e %s ] || limited nmcli --wait 30 connection up uuid %s ifname %s; }",
			ssh.Quote(t.file), u, nic)
	case netconf.Networkd:
		return limit + fmt.Sprintf("{ networkctl reload && networkctl reconfigure %s; } || limited systemctl restart systemd-networkd", nic)
	}
	return limit + fmt.Sprintf("{ ifdown %s >/dev/null 2>&1 || :; }\nif [ -e %s ]; then limited ifup %[1]s; fi", nic, ssh.Quote(t.file))
}

// settle brings about by hand what the system left (an MTU that some apply only at boot, addresses that nobody
// manages any more), and waits until the interface has what it shall have.
func (t turn) settle(limit time.Duration) string {
	nic := ssh.Quote(t.nic.Name)
	var b strings.Builder
	for _, a := range t.stale {
		fmt.Fprintf(&b, "ip addr del %s dev %s 2>/dev/null || :\n", ssh.Quote(a), nic)
	}
	if t.mtu > 0 {
		fmt.Fprintf(&b, "[ \"$(cat /sys/class/net/%s/mtu)\" = %d ] || ip link set dev %[1]s mtu %[2]d || :\n", nic, t.mtu)
	}
	for _, a := range t.back {
		fmt.Fprintf(&b, "ip -o addr show dev %s | grep -qF %s || ip addr add %s dev %[1]s 2>/dev/null || :\n", nic, ssh.Quote(" "+a+" "), ssh.Quote(a))
	}
	if t.down {
		fmt.Fprintf(&b, "ip link set dev %s down || :\n", nic)
	}
	if t.address == "" {
		b.WriteString("exit 0\n")
		return b.String()
	}
	looks := 1
	if t.system == netconf.Netplan || t.system == netconf.Networkd {
		looks = 2 // networkd reconfigures when networkctl has ended, and takes for a moment what it has just given
	}
	fmt.Fprintf(&b, `ip link set dev %[1]s up || :
i=0 seen=0
while :; do
	if ip -o addr show dev %[1]s | grep -qF %[2]s && [ "$(cat /sys/class/net/%[1]s/mtu)" = %[3]d ]; then seen=$((seen + 1)); else seen=0; fi
	[ $seen -lt %[5]d ] || exit 0
	[ $i -lt %[4]d ] || break
	i=$((i + 1))
	sleep 1
done
why=
[ "$(cat /sys/class/net/%[1]s/carrier 2>/dev/null)" != 0 ] || why=', for its link has no carrier (is the adapter of the VM connected?)'
echo "%[1]s did not get its address and MTU$why: $(ip -o addr show dev %[1]s | tr '\n' ' ')" >&2
undo
`, nic, ssh.Quote(" "+t.address+" "), t.mtu, max(1, int(limit/time.Second)), looks)
	return b.String()
}
