package netconf

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// netplan translates its files for systemd-networkd or NetworkManager, whose rules then decide; see translate.go.
type netplan struct{ tools []string }

// netplanDirs are its directories; a file hides one of the same name in a later directory (netplan-generate(8)).
var netplanDirs = []string{"/run/netplan", "/etc/netplan", "/lib/netplan", "/usr/lib/netplan"}

func isNetplan(file string) bool {
	return isIn(file, netplanDirs...) && strings.HasSuffix(file, ".yaml")
}

func (netplan) own(a Static) string {
	return "/etc/netplan/60-rdma-setup-" + backends.Slug(a.PortGroup) + ".yaml"
}

// stanzaIDs are the ids that our stanza may have, in the order of preference: with networkd, of the files 10-netplan-ID.network that match
// an interface the first by name decides. A stanza of others with the same id would merge with ours.
func stanzaIDs(a Static) []string {
	return []string{"0-rdma-setup-" + backends.Slug(a.PortGroup), "!-rdma-setup-" + backends.Slug(a.PortGroup)}
}

func (p netplan) add(files []File, links []Link, a Static) (File, error) {
	all, err := readPlans(files)
	if err != nil {
		return File{}, err
	}
	l, _ := linkOf(links, a.NIC)
	renderer, by := all.rendererFor(l)
	if why, hint := p.idle(renderer); why != "" {
		return File{}, &Refusal{File: cmp.Or(by, "/etc/netplan"), Why: why, Hint: hint}
	}
	for _, s := range all.stanzas {
		if name := s.text("set-name"); s.fits(l) && name != "" && name != a.Name {
			return File{}, &Refusal{File: s.file, Why: fmt.Sprintf("stanza %s gives %s the name %s", s.id, a.Name, name),
				Hint: "Restart the guest, or remove set-name from the stanza."}
		}
	}
	if renderer == NetworkManager {
		if f, err := (networkManager{}).add(append(nativeOf(files), all.translate()...), links, a); err != nil {
			return f, all.origin(err)
		}
	}
	var f File
	for _, id := range stanzaIDs(a) {
		if all.find(id) != nil {
			continue
		}
		f = File{p.own(a), netplanText(id, renderer, all.renderer == renderer, a)}
		after, err := p.Effective(append(slices.Clone(files), f), links)
		if err != nil {
			return File{}, err
		}
		if is, _ := Of(after, a.Name); is.File == f.Path || len(links) == 0 {
			break
		}
	}
	return f, nil
}

// netplanText returns a netplan file for one interface, matched by its MAC, with a stanza of its own. The current name is set explicitly:
// with an MTU netplan writes a .link file, which disables the rules that name interfaces (canonical/cloud-init#3034). With DHCP the
// overrides ignore the server's routes, DNS servers and MTU (netplan reference, "DHCP overrides"). A boot does not wait for the link
// ("optional"). NetworkManager's profile gets the highest priority, because netplan gives its profiles none, and what netplan has no
// words for ("networkmanager", "passthrough": netplan 0.102 and later, in a stanza that names its renderer).
func netplanText(id string, renderer System, global bool, a Static) string {
	dhcp := a.CIDR == backends.DHCP
	dhcp4, addresses := "false", fmt.Sprintf("      addresses:\n        - \"%s\"\n", a.CIDR)
	if dhcp {
		dhcp4, addresses = "true", "      dhcp4-overrides:\n        use-routes: false\n        use-dns: false\n        use-mtu: false\n"
	}
	more := "      accept-ra: false\n"
	switch {
	case renderer == NetworkManager:
		more = fmt.Sprintf(
			"      renderer: NetworkManager\n      networkmanager:\n        passthrough:\n          connection.autoconnect-priority: \"%d\"\n     "+
				"     ipv4.never-default: \"true\"\n"+
				"          ipv6.method: \"link-local\"\n", priority)
		if dhcp {
			addresses = "      dhcp4-overrides:\n        use-routes: false\n"
			more += "          ipv4.ignore-auto-dns: \"true\"\n"
		}
	case !global:
		more = "      renderer: networkd\n" + more
	}
	return comment(a) + fmt.Sprintf(`network:
  version: 2
  ethernets:
    %s:
      match:
        macaddress: "%s"
      set-name: %s
      optional: true
      dhcp4: %s
      dhcp6: false
      mtu: %d
%s`, quoteYAML(id), a.MAC, quoteYAML(a.Name), dhcp4, a.MTU, more+addresses+a.netplanRule())
}

// netplanRule is a policy for packets from the address (netplan reference, "Routing policies" and "Routes").
func (a Static) netplanRule() string {
	from, subnet, ok := a.rule()
	if !ok {
		return ""
	}
	return fmt.Sprintf(`      routing-policy:
        - from: "%[1]s"
          table: %[3]d
          priority: %[3]d
      routes:
        - to: "%[2]s"
          from: "%[1]s"
          scope: link
          table: %[3]d
`, from, subnet, a.Table)
}

// quoteYAML quotes a string unless it is plainly a string.
func quoteYAML(s string) string {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return fmt.Sprintf("%q", s)
		}
	}
	if s == "" || s[0] < 'A' {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// rendererFor returns the renderer for our stanza, and the file that says it: that of the stanzas which also fit the interface if they
// agree.
func (p *plans) rendererFor(l Link) (renderer System, by string) {
	var rivals []System
	for _, s := range p.stanzas {
		if s.fits(l) {
			rivals, by = append(rivals, s.renderer), s.file
		}
	}
	if rivals = slices.Compact(rivals); len(rivals) == 1 {
		return rivals[0], by
	}
	return p.renderer, p.by
}

// idle says why nothing would do what netplan writes for a renderer: netplan starts networkd where it needs it, unless that is masked, and
// never installs NetworkManager (netplan, netplan_cli/cli/commands/apply.py).
func (p netplan) idle(renderer System) (why, hint string) {
	switch has := func(s string) bool { return slices.Contains(p.tools, s) }; {
	case renderer == NetworkManager && len(p.tools) > 0 && !has("NetworkManager"):
		return "its renderer is NetworkManager, which does not run in the guest: no interface would be configured",
			"Set renderer: networkd in the file, or install and start NetworkManager."
	case renderer == Networkd && has("no-networkd"):
		return "netplan's renderer is networkd, and systemd-networkd is masked or missing: no interface would be configured",
			"Run systemctl unmask systemd-networkd, or set the renderer that the guest uses in its netplan files."
	}
	return "", ""
}

// Effective implements Program.
func (netplan) Effective(files []File, links []Link) ([]Effective, error) {
	p, err := readPlans(files)
	if err != nil {
		return nil, err
	}
	return p.effective(files, p.translate(), links), nil
}

// Generated is Effective for the files that `netplan generate --root-dir` has made of netplan's: generated are the files below
// run/systemd/network and run/NetworkManager, with the paths that they have without the root directory.
func Generated(files, generated []File, links []Link) ([]Effective, error) {
	p, err := readPlans(files)
	if err != nil {
		return nil, err
	}
	return p.effective(files, generated, links), nil
}

// Pending refuses what has been changed in netplan's files since the programs read what netplan had made of them: the next `netplan apply`,
// or the next boot, puts it in force. files are all files, with those that netplan has written below /run; generated are those that it
// would write now. It compares what they mean. A change of this program alone is none: its turn was interrupted.
func Pending(files, generated []File, links []Link) error {
	p, err := readPlans(files)
	if err != nil {
		return err
	}
	written := Written(files)
	var first *Refusal
	refuse := func(file, why string) {
		if first == nil {
			first = &Refusal{File: file, Why: "it has changes that are not in force yet: " + why,
				Hint: "Put them in force with sudo netplan apply in the guest (at the VM's console if they may end SSH), or take them back; " +
					"then plan again."}
		}
	}
	was, is := p.effective(files, written, links), p.effective(files, generated, links)
	for i, e := range was {
		if d := e.differs(is[i]); len(d) > 0 && !strings.Contains(e.File+is[i].File, backends.OwnName) {
			refuse(cmp.Or(is[i].File, e.File), strings.Join(d, "; "))
		}
	}
	for _, pair := range [][2][]File{{written, generated}, {generated, written}} {
		for _, f := range pair[0] {
			base := path.Base(f.Path)
			there := slices.ContainsFunc(pair[1], func(o File) bool { return path.Base(o.Path) == base })
			switch s := p.stanzaOf(f.Path); {
			case there || !generatedName.MatchString(base) || strings.HasSuffix(base, ".netdev"):
			case strings.Contains(base, backends.OwnName) ||
				slices.ContainsFunc(files, func(o File) bool { return o.Path == path.Join(keyfileDirs[0], base) }):
				// Ours; or one that NetworkManager keeps in /etc since somebody edited it there.
			case s != nil:
				refuse(s.file, "the stanza "+s.id)
			default:
				refuse(f.Path, "no file has its stanza any longer")
			}
		}
	}
	if first == nil {
		return nil
	}
	return first
}

// FileOf returns netplan's last file that contributes to a stanza; "" if there is none.
func FileOf(files []File, id string) string {
	if p, err := readPlans(files); err == nil && p.find(id) != nil {
		return p.find(id).file
	}
	return ""
}

// Origin returns the file that people write for one that decides now, and netplan's stanza; "" for a file that netplan has not written.
func Origin(files []File, now string) (file, id string) {
	if p, err := readPlans(files); err == nil {
		if s := p.stanzaOf(now); s != nil {
			return s.file, s.id
		}
	}
	return now, ""
}

// Written returns the files that netplan has written for systemd-networkd and NetworkManager.
func Written(files []File) []File {
	return slices.DeleteFunc(slices.Clone(files), func(f File) bool {
		return !strings.HasPrefix(f.Path, "/run/systemd/network/") && !strings.HasPrefix(f.Path, "/run/NetworkManager/")
	})
}

// effective combines the two programs: networkd has an interface if a file is for it, and netplan tells NetworkManager to leave it alone.
func (p *plans) effective(files, generated []File, links []Link) (all []Effective) {
	files = append(nativeOf(files), generated...)
	all, _ = networkd{}.Effective(files, links)
	manager, _ := networkManager{}.Effective(files, links)
	for i := range all {
		e := &all[i]
		if m := manager[i]; e.File == "" && p.manager() && m.File != "" {
			m.LinkFile, m.Name, m.Unsure = e.LinkFile, e.Name, e.Unsure
			*e = m
		}
		if s := p.stanzaOf(e.File); s != nil {
			e.File, e.ID = s.file, s.id
			_, _, e.Uppers = p.above(s)
		}
		if s := p.stanzaOf(e.LinkFile); s != nil {
			e.LinkFile = s.file
		}
	}
	return all
}

// manager reports whether NetworkManager does anything.
func (p *plans) manager() bool {
	return p.renderer == NetworkManager || slices.ContainsFunc(p.stanzas, func(s *stanza) bool { return s.renderer == NetworkManager })
}

// generatedName is the name of a file that netplan writes.
var generatedName = regexp.MustCompile(`^(?:10-)?netplan-(.*?)\.(?:network|link|netdev|nmconnection)$`)

// stanzaOf returns the stanza of a generated file.
func (p *plans) stanzaOf(file string) *stanza {
	m := generatedName.FindStringSubmatch(path.Base(file))
	if m == nil || !strings.HasPrefix(file, "/run/") {
		return nil
	}
	id, err := url.PathUnescape(m[1])
	if err != nil {
		id = m[1]
	}
	if s := p.find(id); s != nil {
		return s
	}
	return p.find(m[1])
}

// origin names netplan's file instead of the one made of it.
func (p *plans) origin(err error) error {
	var r *Refusal
	if errors.As(err, &r) {
		if s := p.stanzaOf(r.File); s != nil {
			r.File = s.file
		}
	}
	return err
}

// nativeOf returns the files that netplan has not generated.
func nativeOf(files []File) (natives []File) {
	for _, f := range files {
		base := path.Base(f.Path)
		if strings.HasPrefix(f.Path, "/run/") && (generatedName.MatchString(base) || base == "netplan.conf" || base == globallyManaged) {
			continue
		}
		natives = append(natives, f)
	}
	return natives
}
