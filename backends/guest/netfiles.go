package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// names adds what ip prints of the links beside their addresses: alternative names, and the permanent MAC of a bond's member ("permaddr",
// iproute2 5.8), and the static routes of the main table.
func (f facts) names(n *network) {
	var link *netconf.Link
	for line := range strings.SplitSeq(f["addresses"], "\n") {
		w := strings.Fields(line)
		if len(w) < 2 {
			continue
		}
		if line[0] != ' ' {
			name, _, _ := strings.Cut(strings.TrimSuffix(w[1], ":"), "@")
			link = nil
			if at := slices.IndexFunc(n.links, func(l netconf.Link) bool { return l.Name == name }); at >= 0 {
				link = &n.links[at]
			}
			continue
		}
		if link == nil {
			continue
		}
		if w[0] == "altname" {
			link.Alt = append(link.Alt, w[1])
		} else if mac := after(line, "permaddr"); mac != "" {
			link.MAC = strings.ToLower(mac)
		}
	}
	for line := range strings.SplitSeq(f["routes"], "\n") {
		dev, via, proto := after(line, "dev"), after(line, "via"), after(line, "proto")
		if dev != "" && proto != "kernel" && proto != "ra" && proto != "dhcp" && proto != "redirect" {
			n.routes[dev] = append(n.routes[dev], strings.TrimSpace(strings.Fields(line)[0]+" "+via))
		}
	}
}

// now adds the files that decide now. /lib is /usr/lib.
func (f facts) now(n *network) {
	for line := range strings.SplitSeq(f["netnow"], "\n") {
		name, file, ok := strings.Cut(strings.TrimSpace(line), " ")
		if at := slices.IndexFunc(n.links, func(l netconf.Link) bool { return l.Name == name }); ok && at >= 0 {
			if strings.HasPrefix(file, "/lib/") {
				file = "/usr" + file
			}
			n.links[at].Now = append(n.links[at].Now, file)
		}
	}
}

// pending returns a file that decides for a card after a boot and not now, or whose static addresses the card does not have: it was changed
// since its program has read it. Not compared are links without a file now, interrupted changes of this program, and DHCP: a lease without
// end looks like a static address (RFC 2131, 3.3).
func (n *network) pending() *backends.FileProblem {
	for i, e := range n.effective {
		l := n.links[i]
		now, id := n.nowOf(e, l)
		if now == "" || !l.Device || n.master[l.Name] != "" || n.shared != nil || e.Unsure {
			continue
		}
		_, ours := backends.NetFileOf(now)
		_, coming := backends.NetFileOf(e.File)
		// What is in /run, and not netplan's, an initrd has written: no boot finds it there (nm-initrd-generator(8)).
		initrd := strings.HasPrefix(now, "/run/") && id == ""
		gone := !initrd && !slices.ContainsFunc(n.files, func(f netconf.File) bool { return f.Path == now })
		why := ""
		switch {
		case ours || coming:
		case e.File == "" && gone:
			why = "it is in force for " + l.Name + ", and no longer there"
		case e.File != "" && (e.File != now || id != "" && id != e.ID) && !initrd:
			why = now + " decides for " + l.Name + " now"
		case e.File != "" && !e.Unmanaged:
			why = inactive(e, n.interfaces[i])
		}
		if why != "" {
			return &backends.FileProblem{File: cmp.Or(e.File, now), Why: "it has changes that are not in force yet: " + why,
				Remedy: "Put them in force (networkctl reload and reconfigure, nmcli connection reload and up), or take them back; then plan again."}
		}
	}
	return nil
}

// nowOf returns the file that decides for a link now, and netplan's stanza: of several, as with a VPN over the card, that of e.
func (n *network) nowOf(e netconf.Effective, l netconf.Link) (now, id string) {
	for _, f := range l.Now {
		stanza := ""
		if strings.Contains(f, "/systemd/network/") != (e.Renderer == netconf.Networkd) {
			continue
		}
		if n.system == netconf.Netplan {
			f, stanza = netconf.Origin(n.files, f)
		}
		if now == "" || f == e.File && (stanza == "" || stanza == e.ID) {
			now, id = f, stanza
		}
	}
	return now, id
}

// inactive says which static address a file has and its interface does not, while that has another of the family.
func inactive(e netconf.Effective, i backends.Interface) string {
	for _, a := range e.Addresses {
		p, err := netip.ParsePrefix(a)
		other := slices.ContainsFunc(i.Addresses, func(o string) bool { return strings.Contains(o, ":") == strings.Contains(a, ":") })
		if err == nil && !p.Addr().IsLinkLocalUnicast() && !p.Addr().IsUnspecified() && other && !slices.Contains(i.Addresses, a) {
			return i.Name + " does not have " + a
		}
	}
	return ""
}

// decide finds what decides for each link.
func (n *network) decide() {
	if p, ok := netconf.For(n.system, n.tools...); ok {
		n.effective, n.refusal = p.Effective(n.files, n.links)
	}
	if own, other, id := netconf.Shared(n.files); own != "" {
		n.shared = &backends.FileProblem{File: own, Why: "changes the stanza " + strconv.Quote(id) + " of " + other,
			Remedy: "Run rdma-setup apply, which writes a stanza of its own in its place."}
	}
}

// of returns what decides for an interface.
func (n *network) of(name string) (netconf.Effective, bool) { return netconf.Of(n.effective, name) }

// inForce returns what is in force now: of netplan what its generator has written.
func (n *network) inForce() []netconf.Effective {
	if n.force != nil {
		return n.force
	}
	if n.system != netconf.Netplan {
		return n.effective
	}
	all, _ := netconf.Generated(n.files, netconf.Written(n.files), n.links)
	return all
}

// problem returns a refusal as data.
func problem(err error) *backends.FileProblem {
	var r *netconf.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		return &backends.FileProblem{File: r.File, Line: r.Line, Why: r.Why, Remedy: r.Hint}
	}
	return &backends.FileProblem{Why: err.Error()}
}

// A candidate is an address with which is found what stands in the way of one on an interface, and the file that would give it.
type candidate struct {
	name  string // of the interface; "": any that a new adapter gets
	files []netconf.File
	links []netconf.Link
	want  netconf.Static
	own   netconf.File
}

// freeMAC returns a locally administered MAC that no interface has.
func (n *network) freeMAC() (mac string) {
	for i := 1; ; i++ {
		mac = fmt.Sprintf("02:00:00:00:02:%02x", i)
		if !slices.ContainsFunc(n.links, func(l netconf.Link) bool { return l.MAC == mac }) {
			return mac
		}
	}
}

// nicNames matches names of interfaces in files. Of a pattern it is the beginning: "ens224" of "ens224*", which fits it.
var nicNames = regexp.MustCompile(`\be(?:n[opsx]|th)[0-9][a-z0-9]*\b`)

// rivals returns the files that prevent an address of this program, by the names of interfaces: of those that exist, except the ones
// that must not be changed, and of those that a new adapter may get: a name that a file mentions, and any name (""). For the others it
// returns the files that would be written.
func (n *network) rivals() (found map[string]backends.FileProblem, would []candidate) {
	p, ok := netconf.For(n.system, n.tools...)
	if !ok || n.refusal != nil {
		return nil, nil
	}
	found = map[string]backends.FileProblem{}
	try := func(name string, files []netconf.File, links []netconf.Link, nic netconf.NIC) {
		c := candidate{name: name, files: files, links: links, want: netconf.Static{NIC: nic, PortGroup: "probe", CIDR: "192.0.2.1/24",
			MTU: 1500}}
		var err error
		if c.own, err = p.Add(files, links, c.want); err == nil {
			would = append(would, c)
			return
		}
		found[name] = c.standIn(problem(err))
	}
	prefix := ""
	for _, l := range n.links {
		if !l.Device || n.master[l.Name] != "" {
			continue
		}
		if at := strings.IndexAny(l.Name, "0123456789"); at > 0 {
			prefix = l.Name[:at]
		}
		if n.management[l.Name] != "" {
			continue
		}
		mine := func(f netconf.File) bool { // of an address that it already has; ifupdown's has no MAC
			return strings.Contains(path.Base(f.Path), "rdma-setup") && (strings.Contains(strings.ToLower(f.Content), l.MAC) ||
				path.Dir(f.Path) == "/etc/network/interfaces.d" && slices.Contains(strings.Fields(f.Content), l.Name))
		}
		try(l.Name, slices.DeleteFunc(slices.Clone(n.files), mine), n.links, netconf.NIC{Name: l.Name, MAC: l.MAC})
	}
	names := map[string]string{}
	if prefix != "" {
		names[prefix+"9999"] = ""
	}
	for _, f := range n.files {
		for _, name := range nicNames.FindAllString(f.Path+"\n"+f.Content, -1) {
			if strings.HasPrefix(name, prefix) && !slices.ContainsFunc(n.links, func(l netconf.Link) bool { return l.Name == name }) {
				names[name] = name
			}
		}
	}
	mac := n.freeMAC()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		link := netconf.Link{Name: name, MAC: mac, Driver: "vmxnet3", Device: true}
		try(names[name], n.files, append(slices.Clone(n.links), link), netconf.NIC{Name: name, MAC: mac})
	}
	return found, would
}

// standIn names what a candidate stands for.
func (c candidate) standIn(p *backends.FileProblem) backends.FileProblem {
	if c.name == "" {
		p.Why, p.Remedy = strings.ReplaceAll(p.Why, c.want.Name, "any new adapter"), strings.ReplaceAll(p.Remedy, c.want.Name, "new adapters")
	}
	return *p
}

// invalid returns the file with which the guest's network would not be configured, or would be another after the next boot; tried is what
// the guest's own program has said of its files.
func (n *network) invalid(tried trial) *backends.FileProblem {
	if n.refusal != nil {
		return problem(n.refusal)
	}
	if p := tried.problem(); p != nil {
		if m := netplanStanza.FindStringSubmatch(string(tried)); m != nil && p.File == "" {
			p.File = netconf.FileOf(n.files, m[1])
		}
		return p
	}
	if strings.HasPrefix(string(tried), "exit 0\n") && n.system == netconf.Netplan {
		if err := netconf.Pending(n.files, tried.generated(), n.links); err != nil {
			return problem(err)
		}
	}
	return nil
}

// A trial is what `netplan generate` says and writes in a scratch directory; see assets/scripts/netplan-try.sh.
type trial string

func tryScript(add ...string) string { return "(\n" + script("netplan-try.sh", add...) + ")" }

// made reports whether netplan was asked.
func (t trial) made() bool { return strings.HasPrefix(string(t), "exit ") }

// netplanError matches netplan's place of an error: "/etc/netplan/95-broken.yaml:5:1: Invalid YAML: ...", or the file alone;
// netplanStanza that of what only its writer finds: "ERROR: any: networkd backend does not support wifi with match:".
var (
	netplanError  = regexp.MustCompile(`(/(?:etc|run|lib|usr/lib)/netplan/[^:\s]+):(?:(\d+):\d+:)? (.*)`)
	netplanStanza = regexp.MustCompile(`(?m)^ERROR: (\S+): `)
)

// problem returns why netplan would generate nothing; nil if it would, or was not asked.
func (t trial) problem() *backends.FileProblem {
	head, rest, _ := strings.Cut(string(t), "\n")
	code, is := strings.CutPrefix(head, "exit ")
	if !is || code == "0" {
		return nil
	}
	said, _, _ := strings.Cut(rest, "\nfile ")
	if m := netplanError.FindStringSubmatch(said); m != nil {
		line, _ := strconv.Atoi(m[2])
		return &backends.FileProblem{File: m[1], Line: line, Why: m[3],
			Remedy: "Correct the file: without that the guest has no network after its next boot."}
	}
	return &backends.FileProblem{Why: "netplan generate: " + lastLines(said, 2),
		Remedy: "Correct the files in /etc/netplan: without that the guest has no network after its next boot."}
}

// generated returns the files that netplan has written.
func (t trial) generated() (files []netconf.File) {
	for _, k := range dumped(string(t)) {
		files = append(files, netconf.File{Path: "/" + strings.TrimPrefix(k.Path, "/"), Content: string(k.Content)})
	}
	return files
}

// try judges the file of this program before it is written. It lets a guest's netplan generate from its files as they are, and from its
// files with one of this program, and refuses the file if it would change any other interface, or the interface would not get the address.
// Its exit code alone proves nothing: netplan ends with 0 also if a stanza takes a member out of its bond.
func (g *Guests) try(ctx context.Context, vm string, n *network, f netconf.File, want netconf.Static) error {
	refused := func(p *backends.FileProblem) error {
		return backends.Errorf(backends.KindRefused, label(vm), p.Remedy, "%s", p)
	}
	if n.system != netconf.Netplan {
		return nil
	}
	said, err := g.ask(ctx, vm, "try the files with netplan", ssh.Command{Limit: 2 * time.Minute, MaxOutput: 8 << 20,
		Script: section("before", tryScript()) + section("after", tryScript(f.Path, f.Content)) + ":\n"})
	if err != nil {
		return err
	}
	s := sections(said)
	before, after := trial(s["before"]), trial(s["after"])
	if p := cmp.Or(n.invalid(before), n.pending()); p != nil {
		return refused(p)
	}
	if !before.made() || !after.made() {
		return backends.Errorf(backends.KindTransient, label(vm), "", "the trial of the files with netplan could not be made")
	}
	c := candidate{links: n.links, want: want, own: f, files: n.files}
	if p := c.judge(before, after, n.shared != nil); p != nil {
		return refused(p)
	}
	return nil
}

// judge says what stands in the way of a candidate by what netplan generates without its file and with it. restored: other interfaces
// become again what an earlier release has changed.
func (c candidate) judge(before, after trial, restored bool) *backends.FileProblem {
	if p := after.problem(); p != nil {
		return p
	}
	was, err := netconf.Generated(c.files, before.generated(), c.links)
	if err != nil {
		return problem(err)
	}
	files := append(slices.DeleteFunc(slices.Clone(c.files), func(o netconf.File) bool { return o.Path == c.own.Path }), c.own)
	is, err := netconf.Generated(files, after.generated(), c.links)
	if err != nil {
		return problem(err)
	}
	if d := netconf.Difference(was, is, c.want.Name); len(d) > 0 && !restored {
		return &backends.FileProblem{File: c.own.Path, Why: "it would change other interfaces (netplan generate): " + strings.Join(d, "; "),
			Remedy: "Configure the address by hand and exclude the guest."}
	}
	if e, _ := netconf.Of(is, c.want.Name); e.File != c.own.Path ||
		c.want.CIDR != backends.DHCP && (e.DHCP4 || !slices.Contains(e.Addresses, c.want.CIDR)) {
		return &backends.FileProblem{File: e.File, Why: "it decides for " + c.want.Name + " after a boot, not " + c.own.Path +
			" (netplan generate)",
			Remedy: "Remove " + c.want.Name + " from that file."}
	}
	return nil
}

// mostTrials bounds how many candidates netplan is asked about: those of interfaces that exist come first.
const mostTrials = 8

// tryComing lets the guest's netplan judge the files that would be written, before a VM is powered off, and adds what stands in their way.
// A guest whose interfaces all have files of this program has been judged when these were written.
func (g *Guests) tryComing(ctx context.Context, c *ssh.Conn, n *network, before trial, out *backends.Guest) {
	_, would := n.rivals()
	would = slices.DeleteFunc(would, func(w candidate) bool { return len(w.files) < len(n.files) }) // it has a file of this program
	free := slices.ContainsFunc(n.interfaces, func(i backends.Interface) bool {
		_, ours := backends.NetFileOf(i.Config)
		return !i.Virtual && n.management[i.Name] == "" && !ours
	})
	some := slices.ContainsFunc(n.files, func(f netconf.File) bool { _, ours := backends.NetFileOf(f.Path); return ours })
	if n.system != netconf.Netplan || out.NetInvalid != nil || !strings.HasPrefix(string(before), "exit 0\n") || some && !free {
		return
	}
	would = would[:min(len(would), mostTrials)]
	var b strings.Builder
	for i, w := range would {
		b.WriteString(section("try"+strconv.Itoa(i), tryScript(w.own.Path, w.own.Content)))
	}
	r, err := c.Run(ctx, traced(ssh.Command{What: "try the files with netplan", Script: b.String(), Limit: 2 * time.Minute, MaxOutput: 8 << 20,
		Sudo: true}))
	if err != nil {
		return // judged again before the file is written
	}
	s := sections(r.Stdout)
	for i, w := range would {
		after := trial(s["try"+strconv.Itoa(i)])
		if p := w.judge(before, after, n.shared != nil); p != nil && after.made() {
			out.NetRivals[w.name] = w.standIn(p)
		}
	}
}
