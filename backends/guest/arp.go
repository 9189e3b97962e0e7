package guest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// arp sets how an interface that shares its subnet with another one handles ARP: KindARP. systemd-sysctl reads the file at boot,
// and again when udev finds the interface (sysctl.d(5); 99-systemd.rules of systemd).
type arp struct{ recorded }

// arpPrefix is the prefix of the file names. They do not contain "rdma-setup", for the reason given at nouveauFile.
const arpPrefix = "/etc/sysctl.d/60-rdma_setup-"

// arpKeys are the sysctls of an interface below /proc/sys, in the order of ARPSpec. sysctl.d accepts names with slashes, so that
// dots in an interface's name are kept.
func arpKeys(nic string) []string {
	at := "net/ipv4/conf/" + nic + "/"
	return []string{at + "arp_ignore", at + "arp_announce", at + "rp_filter"}
}

func arpNumbers(a backends.ARPSpec) []string {
	return []string{strconv.Itoa(a.Ignore), strconv.Itoa(a.Announce), strconv.Itoa(a.RPFilter)}
}

// ARPText returns the file for an interface.
func ARPText(nic string, a backends.ARPSpec) string {
	text := ours
	for i, key := range arpKeys(nic) {
		text += key + " = " + arpNumbers(a)[i] + "\n"
	}
	return text
}

// arpScript reads ARP settings and policy routing, for facts.policies.
func arpScript() string {
	return section("arp", script("arp.sh")) + section("arpfiles", patterned("dump.sh", arpPrefix+"*.conf")) +
		section("rules", "ip -4 rule show") + section("tables", "ip -4 route show table all | grep ' table [0-9]'") +
		section("rttables",
			"cat /usr/share/iproute2/rt_tables /usr/lib/iproute2/rt_tables /etc/iproute2/rt_tables /etc/iproute2/rt_tables.d/*.conf")
}

var arpLine = regexp.MustCompile(`(?m)^net/ipv4/conf/(\S+)/(arp_ignore|arp_announce|rp_filter) = (\d+)$`)

// policies adds the values of the interfaces under net.ipv4.conf, and the tables of the rules for packets from their addresses.
func (f facts) policies(n *network) {
	for i := range n.interfaces {
		in := &n.interfaces[i]
		for line := range strings.SplitSeq(f["arp"], "\n") {
			if w := strings.Fields(line); len(w) == 4 && w[0] == in.Name {
				_, _ = fmt.Sscan(strings.Join(w[1:], " "), &in.ARP.Ignore, &in.ARP.Announce, &in.ARP.RPFilter)
			}
		}
		for _, file := range dumped(f["arpfiles"]) {
			for _, m := range arpLine.FindAllStringSubmatch(string(file.Content), -1) {
				if m[1] != in.Name {
					continue
				}
				if in.ARPKept == nil {
					in.ARPKept = &backends.ARPSpec{}
				}
				number, _ := strconv.Atoi(m[3])
				*map[string]*int{"arp_ignore": &in.ARPKept.Ignore, "arp_announce": &in.ARPKept.Announce,
					"rp_filter": &in.ARPKept.RPFilter}[m[2]] = number
			}
		}
		n.rules[in.Name] = f.rulesOf(in, n)
	}
}

// A rule sends packets from an address through a table; leads reports whether the table's route uses the interface.
type rule struct {
	from  string
	table int
	leads bool
}

// rulesOf returns the rules for packets from an address of the interface whose routes use it, and the rule of its configuration
// whatever its route is, because the route disappears with the address. ip prints "5001: from 192.168.50.11 lookup 5001 proto
// static" and "192.168.50.0/24 dev ens192 table 5001 scope link src 192.168.50.11" (ip-rule(8), ip-route(8)).
func (f facts) rulesOf(in *backends.Interface, n *network) (rules []rule) {
	c, _ := n.of(in.Name)
	for line := range strings.SplitSeq(f["rules"], "\n") {
		w := strings.Fields(line)
		if len(w) < 5 || w[1] != "from" || w[3] != "lookup" {
			continue
		}
		table, err := strconv.Atoi(w[4])
		of := func(cidr string) bool { return strings.HasPrefix(cidr, w[2]+"/") }
		leads := func(route string) bool { return strings.Contains(route+" ", " dev "+in.Name+" table "+w[4]+" ") }
		r := rule{w[2], table, slices.ContainsFunc(strings.Split(f["tables"], "\n"), leads)}
		if err == nil && (slices.ContainsFunc(in.Addresses, of) && r.leads || table == c.Table && slices.ContainsFunc(c.Addresses, of)) {
			rules = append(rules, r)
		}
	}
	return rules
}

// routeNumbers returns the numbers above 255 that are in use as priorities of rules, as tables of rules and routes, and as tables
// with a name, each with the interface of its rules and routes: "" for none or several. ip prints a table by its name if it has
// one (iproute2, lib/rt_names.c), without the number.
func (f facts) routeNumbers(n *network) map[int]string {
	var used map[int]string
	note := func(word, nic string) {
		number, err := strconv.ParseUint(word, 0, 32)
		if err != nil || number < 256 || number == 32766 || number == 32767 { // the kernel's own rules and tables
			return
		}
		if was, there := used[int(number)]; there && was != nic {
			nic = ""
		}
		if used == nil {
			used = map[int]string{}
		}
		used[int(number)] = nic
	}
	for line := range strings.SplitSeq(f["rules"], "\n") {
		priority, selector, _ := strings.Cut(line, ":")
		nic := ""
		for name, rules := range n.rules {
			for _, r := range rules {
				if w := strings.Fields(selector); len(w) > 3 && w[1] == r.from && w[2] == "lookup" && w[3] == strconv.Itoa(r.table) {
					nic = name
				}
			}
		}
		note(priority, nic)
		note(after(selector, "lookup"), nic)
	}
	for line := range strings.SplitSeq(f["tables"], "\n") {
		note(after(line, "table"), after(line, "dev"))
	}
	for line := range strings.SplitSeq(f["rttables"], "\n") {
		number, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, _, _ = strings.Cut(number, "\t")
		note(number, "")
	}
	return used
}

// after returns the word that follows another word in a line, "" if there is none.
func after(line, word string) string {
	w := strings.Fields(line)
	if i := slices.Index(w, word); i >= 0 && i+1 < len(w) {
		return w[i+1]
	}
	return ""
}

func (a arp) find(ctx context.Context, s backends.Setting) (*backends.Interface, error) {
	_, i, err := address{a.g}.find(ctx, s)
	return i, err
}

func arpFile(portGroup string) string { return arpPrefix + backends.Slug(portGroup) + ".conf" }

// Read returns the active and persistent values, Partial if they are only one of both, Absent if there is no file of this
// program.
func (a arp) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	i, err := a.find(ctx, s)
	return i.ARPValue(), err
}

// Set writes the file, then the active values.
func (a arp) Set(ctx context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	vm := s.Target.Name
	i, err := a.find(ctx, s)
	switch {
	case err != nil || i.ARPValue() == to:
		return err
	case to.IsAbsent(): // a reboot restores the active values
		return a.g.putBack(ctx, vm, backends.Kept{Items: []backends.Item{{Kind: backends.ItemFile, Name: arpFile(s.Name)}}})
	case i == nil:
		return backends.Refusedf(label(vm),
			"Check that the adapter is attached, that the VM was power-cycled since, and that the guest has a driver for it.",
			"no interface has the MAC of the adapter on %s", s.Name)
	}
	var want backends.ARPSpec
	if err := to.Decode(&want); err != nil {
		return err
	}
	if err := a.g.put(ctx, vm, arpFile(s.Name), []byte(ARPText(i.Name, want)), 0o644, ""); err != nil {
		return err
	}
	var numbers []string
	for k, key := range arpKeys(i.Name) {
		numbers = append(numbers, key, arpNumbers(want)[k])
	}
	_, err = a.g.root(ctx, vm, "set arp_ignore, arp_announce and rp_filter of "+i.Name,
		ssh.Command{Script: script("sysctl-set.sh", numbers...)})
	return err
}

func (a arp) Keep(ctx context.Context, s backends.Setting, _ backends.Value) (backends.Kept, error) {
	i, err := a.find(ctx, s)
	if err != nil {
		return backends.Kept{}, err
	}
	m := manifest{files: []string{arpFile(s.Name)}}
	if i != nil {
		m.sysctls = arpKeys(i.Name)
	}
	return a.g.record(ctx, s.Target.Name, m)
}
