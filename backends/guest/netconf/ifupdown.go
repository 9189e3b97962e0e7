package netconf

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// interfacesText returns a file for /etc/network/interfaces.d of ifupdown, which identifies interfaces only by name. Its dhcp
// method has no option for the MTU, nor one to ignore the server's routes (interfaces(5)). A boot does not wait for a link that is
// missing: allow-hotplug would leave the interface to udev, and ifup -a would not set it up.
func interfacesText(a Static) string {
	if a.CIDR == backends.DHCP {
		return comment(a) + fmt.Sprintf("auto %s\niface %[1]s inet dhcp\n\tpre-up ip link set dev %[1]s mtu %d\n", a.Name, a.MTU)
	}
	text := comment(a) + fmt.Sprintf("auto %s\niface %[1]s inet static\n\taddress %s\n\tmtu %d\n", a.Name, a.CIDR, a.MTU)
	if from, subnet, ok := a.rule(); ok { // adding an existing rule is an error in ip, which would make ifup fail
		text += fmt.Sprintf("\tpost-up ip route replace %[2]s dev $IFACE scope link src %[1]s table %[3]d\n"+
			"\tpost-up ip rule del from %[1]s table %[3]d 2>/dev/null || :\n\tpost-up ip rule add from %[1]s table %[3]d priority %[3]d\n"+
			"\tpre-down ip rule del from %[1]s table %[3]d || :\n", from, subnet, a.Table)
	}
	return text
}

// ifupdown configures interfaces by their names: all stanzas of one name together, in the order of the files (interfaces(5)).
type ifupdown struct{ tools []string }

const (
	interfacesFile = "/etc/network/interfaces"
	interfacesDir  = "/etc/network/interfaces.d/"
)

func (ifupdown) own(a Static) string {
	return interfacesDir + "rdma-setup-" + backends.Slug(a.PortGroup)
}

func (p ifupdown) add(files []File, _ []Link, a Static) (File, error) {
	f := File{p.own(a), interfacesText(a)}
	if slices.Contains(p.tools, "other-ifup") { // "ifup version 0.8.41" is ifupdown; ifupdown2 and ifupdown-ng print their own names
		return File{},
			&Refusal{File: interfacesFile,
				Why:  "not ifupdown reads it, but a program with other rules, such as ifupdown2 or ifupdown-ng (ifup --version)",
				Hint: "Configure the address by hand and exclude the guest."}
	}
	refuse := func(s definition, why, hint string) (File, error) {
		return File{}, &Refusal{File: s.file, Line: s.line, Why: why, Hint: hint}
	}
	read := false
	for _, s := range interfacesOf(append(slices.Clone(files), f)) {
		switch {
		case s.file == f.Path:
			read = true
		case s.kind == "iface" && s.name == a.Name:
			return refuse(s, "it configures "+a.Name+", and ifupdown adds up what several files say",
				"Remove the stanza of "+a.Name+" from the file.")
		case s.kind == "auto" && s.fits(a.Name) != "":
			return refuse(s, "it starts "+a.Name+" too", "Restrict the pattern to the other interfaces.")
		case s.kind == "mapping" && glob(s.name, a.Name):
			return refuse(s, "it gives "+a.Name+" another configuration", "Restrict the pattern to the other interfaces.")
		}
	}
	if !read {
		return File{}, &Refusal{File: interfacesFile, Why: "it does not read " + interfacesDir,
			Hint: "Add the line: source " + interfacesDir + "*"}
	}
	return f, nil
}

// A definition is a part of the files.
type definition struct {
	kind           string // iface, auto (allow-hotplug as well), mapping, template, invalid
	name           string // or a pattern; for invalid, what is wrong
	family, method string
	inherits       string
	options        [][2]string
	file           string
	line           int
}

// fits returns the name under which an interface is started by an auto line, "" if it is not: "ens192", "/ens*", "/ens*=lan"
// (interfaces(5), "INTERFACE NAME PATTERN MATCHING").
func (d definition) fits(name string) string {
	pattern, logical, renamed := strings.Cut(d.name, "=")
	pattern, isPattern := strings.CutPrefix(pattern, "/")
	pattern = strings.TrimSuffix(pattern, "/1")
	switch {
	case isPattern && !glob(pattern, name), !isPattern && pattern != name:
		return ""
	case renamed:
		return logical
	}
	return name
}

// directoryName is a name that source-directory accepts.
var directoryName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// interfacesOf reads the files in their order, from /etc/network/interfaces on. Without that file, Debian's is assumed.
func interfacesOf(files []File) (all []definition) {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	if !slices.ContainsFunc(files, func(f File) bool { return f.Path == interfacesFile }) {
		files = append(files, File{interfacesFile, "source " + interfacesDir + "*\n"})
	}
	return readInterfaces(files, func(file string) bool { return file == interfacesFile }, 0)
}

func readInterfaces(files []File, wanted func(string) bool, depth int) (all []definition) {
	for _, f := range files {
		if !wanted(f.Path) || depth > 8 {
			continue
		}
		var now *definition
		lines := strings.Split(f.Content, "\n")
		for i := 0; i < len(lines); i++ {
			at, line := i+1, lines[i]
			for strings.HasSuffix(line, "\\") && i+1 < len(lines) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
				i++
				line = strings.TrimSuffix(line, "\\") + lines[i]
			}
			w := strings.Fields(line)
			if len(w) == 0 || w[0][0] == '#' {
				continue
			}
			d := definition{file: f.Path, line: at}
			switch {
			case w[0] == "auto", strings.HasPrefix(w[0], "allow-"):
				now = nil
				for _, name := range w[1:] {
					d.kind, d.name = "auto", name
					all = append(all, d)
				}
			case w[0] == "iface", w[0] == "mapping", w[0] == "template":
				d.kind, d.name = w[0], strings.Join(w[1:min(2, len(w))], "")
				d.address(w)
				all = append(all, d)
				now = &all[len(all)-1]
			case w[0] == "source", w[0] == "source-directory", w[0] == "source-dir":
				now = nil
				for _, pattern := range w[1:] {
					if !path.IsAbs(pattern) {
						pattern = path.Join("/etc/network", pattern)
					}
					all = append(all, readInterfaces(files, func(file string) bool {
						if w[0] == "source" {
							return glob(pattern, file)
						}
						return path.Dir(file) == path.Clean(pattern) && directoryName.MatchString(path.Base(file))
					}, depth+1)...)
				}
			case slices.Contains([]string{"no-auto-down", "no-scripts", "rename", "description"}, w[0]) && now == nil:
			case now == nil:
				d.kind, d.name = "invalid", "misplaced option "+w[0]
				all = append(all, d)
			default:
				now.options = append(now.options, [2]string{w[0], strings.Join(w[1:], " ")})
			}
		}
	}
	return all
}

// address reads "iface NAME FAMILY METHOD [inherits NAME]".
func (d *definition) address(w []string) {
	if d.kind == "mapping" {
		return
	}
	if at := slices.Index(w, "inherits"); at > 0 && at+1 < len(w) {
		d.inherits, w = w[at+1], w[:at]
	}
	switch {
	case len(w) >= 4:
		d.family, d.method = w[2], w[3]
	case d.inherits == "":
		d.kind, d.name = "invalid", "too few parameters for "+d.kind
	}
}

// option returns the last value of an option; ifupdown takes "-" and "_" in the names of most for the same.
func (d definition) option(names ...string) (value string) {
	for _, o := range d.options {
		if slices.Contains(names, strings.ReplaceAll(o[0], "_", "-")) {
			value = o[1]
		}
	}
	return value
}

// Effective implements Program. ifup ends at the first invalid line, and configures nothing.
func (ifupdown) Effective(files []File, links []Link) (all []Effective, err error) {
	found := interfacesOf(files)
	for _, d := range found {
		if d.kind == "invalid" {
			return nil, &Refusal{File: d.file, Line: d.line, Why: "ifupdown cannot read it: " + d.name,
				Hint: "Correct the file: otherwise no interface is configured at the next boot."}
		}
	}
	for _, l := range links {
		e := Effective{Link: l.Name, Renderer: Ifupdown}
		name, auto, above := l.Name, "", ""
		for _, d := range found {
			if d.kind == "auto" && d.fits(l.Name) != "" && auto == "" {
				name, auto = d.fits(l.Name), d.file
			}
		}
		for _, d := range found {
			if d.under(l, &e) {
				above = d.file
			}
			if d.kind == "iface" && d.name == name {
				if auto != "" && e.File == "" {
					e.File, e.ID = d.file, name
				}
				if auto != "" {
					inherited(found, d).says(&e)
				}
			}
		}
		e.File = cmp.Or(e.File, above)
		all = append(all, e)
	}
	return all, nil
}

// under notes the bond or bridge that takes the interface, or a VLAN on it, and reports whether it is one of these.
func (d definition) under(l Link, e *Effective) bool {
	has := func(list string) bool {
		return slices.ContainsFunc(strings.Fields(list),
			func(p string) bool { return p == l.Name || p == "all" && l.Device || p != "*" && glob(p, l.Name) })
	}
	switch {
	case d.kind != "iface":
		return false
	case has(d.option("bond-slaves", "slaves")), has(d.option("bridge-ports")):
		e.Master = d.name
	case strings.HasPrefix(d.name, l.Name+"."), d.option("vlan-raw-device") == l.Name:
		if !slices.Contains(e.Uppers, d.name) {
			e.Uppers = append(e.Uppers, d.name)
		}
	default:
		return false
	}
	return true
}

// inherited adds the options of the stanza that another inherits from.
func inherited(all []definition, d definition) definition {
	for _, from := range all {
		if d.inherits != "" && from.name == d.inherits && (from.kind == "iface" || from.kind == "template") && from.inherits == "" {
			d.options = append(slices.Clone(from.options), d.options...)
			if d.method == "" {
				d.family, d.method = from.family, from.method
			}
		}
	}
	return d
}

func (d definition) says(e *Effective) {
	e.DHCP4 = e.DHCP4 || d.method == "dhcp" && d.family == "inet"
	e.DHCP6 = e.DHCP6 || (d.method == "dhcp" || d.method == "auto") && d.family == "inet6"
	if m := d.option("bond-master", "vrf"); m != "" {
		e.Master = m
	}
	if n, err := strconv.Atoi(d.option("mtu")); err == nil {
		e.MTU = n
	}
	for _, o := range d.options {
		w := strings.Fields(o[1])
		switch o[0] {
		case "address":
			a := o[1]
			if mask := d.option("netmask"); mask != "" && !strings.Contains(a, "/") {
				a += "/" + maskBits(mask)
			}
			e.address(a)
		case "gateway":
			e.Routes = append(e.Routes, "default via "+o[1])
		case "dns-nameservers", "dns-nameserver":
			e.DNS = append(e.DNS, w...)
		case "up", "post-up":
			switch {
			case slices.Contains(w, "rule") && slices.Contains(w, "add"):
				e.ruleOf(w)
			case slices.Contains(w, "route") && !slices.Contains(w, "table"):
				e.Routes = append(e.Routes, o[1])
			}
		}
	}
}
