package netif

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// unitDirs are the directories of the files of systemd-networkd and udev: a name in an earlier one hides the same name in a later
// one (systemd.network(5), systemd.link(5)).
var unitDirs = []string{"/etc/systemd/network", "/run/systemd/network", "/usr/local/lib/systemd/network", "/usr/lib/systemd/network"}

// A unit is a file of systemd-networkd or udev with its drop-ins.
type unit struct {
	file, text string
	sections   []section
}

type section struct {
	name string
	keys [][2]string
}

// get returns the last value of a key, in any section of that name.
func (u *unit) get(name, key string) string {
	if list := u.all(name, key); len(list) > 0 {
		return list[len(list)-1]
	}
	return ""
}

// all returns all values of a key. An empty value removes those before it.
func (u *unit) all(name, key string) (list []string) {
	for _, s := range u.sections {
		for _, k := range s.keys {
			switch {
			case s.name != name || k[0] != key:
			case k[1] == "":
				list = nil
			default:
				list = append(list, k[1])
			}
		}
	}
	return list
}

// section returns a single value of a section that may be repeated.
func (s section) get(key string) (value string) {
	for _, k := range s.keys {
		if k[0] == key {
			value = k[1]
		}
	}
	return value
}

func sections(text string) (list []section) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch key, value, ok := strings.Cut(line, "="); {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			list = append(list, section{name: strings.Trim(line, "[]")})
		case ok && len(list) > 0:
			s := &list[len(list)-1]
			s.keys = append(s.keys, [2]string{strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	}
	return list
}

// named returns the files with a suffix by their name; only the first directory counts.
func named(fs *vfs.FS, dirs []string, suffix string) map[string]string {
	files := map[string]string{}
	for _, dir := range dirs {
		list, err := fs.ReadDir(vfs.Root(), dir)
		if err != nil {
			continue
		}
		for _, i := range list {
			if name := i.Name(); strings.HasSuffix(name, suffix) && files[name] == "" {
				files[name] = dir + "/" + name
			}
		}
	}
	return files
}

// units returns the files with a suffix in the order in which they are tried: the byte order of their names. Empty files and links
// to /dev/null hide others and do nothing. systemd-networkd is an ordinary user, who cannot read every file.
func units(fs *vfs.FS, suffix string, readable bool) (list []*unit) {
	files := named(fs, unitDirs, suffix)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		info, err := fs.Stat(vfs.Root(), files[name])
		data, errRead := fs.ReadFile(vfs.Root(), files[name])
		if err != nil || errRead != nil || len(data) == 0 || readable && info.Mode()&0o004 == 0 {
			continue
		}
		u := &unit{file: files[name], text: string(data)}
		var dropins []string
		for _, dir := range unitDirs {
			dropins = append(dropins, dir+"/"+name+".d")
		}
		extra := named(fs, dropins, ".conf")
		for _, name := range slices.Sorted(maps.Keys(extra)) {
			data, _ := fs.ReadFile(vfs.Root(), extra[name]) // one that cannot be read counts as empty
			u.text += "\n" + string(data)
		}
		u.sections = sections(u.text)
		list = append(list, u)
	}
	return list
}

// fits reports whether the section [Match] selects an interface. name is the key for the name of the interface, which differs by
// kind of file. A file without a valid key selects nothing (net_match_is_empty in systemd's libsystemd-network).
func (u *unit) fits(l Link, key, host string) bool {
	known := 0
	for name, test := range map[string]func([]string) bool{
		key:          func(p []string) bool { return globs(p, l.Name, altname(l)) },
		"MACAddress": l.hasMAC, "PermanentMACAddress": l.hasMAC,
		"Driver": func(p []string) bool { return globs(p, l.Driver()) },
		"Path":   func(p []string) bool { return globs(p, "pci-"+l.PCI()) },
		"Type":   func(p []string) bool { return globs(p, "ether") },
		"Kind":   func(p []string) bool { return globs(p, "") }, // of a virtual interface
		"Host":   func(p []string) bool { return globs(p, host) },
		"Virtualization": func(p []string) bool {
			return slices.ContainsFunc(p, func(w string) bool { return slices.Contains([]string{"yes", "true", "vm", "vmware"}, w) })
		},
		"WLANInterfaceType": nil, "SSID": nil, "BSSID": nil, // of wireless interfaces, which guests do not have
	} {
		var patterns []string
		for _, v := range u.all("Match", name) {
			v, not := strings.CutPrefix(v, "!")
			for word := range strings.FieldsSeq(v) {
				patterns = append(patterns, map[bool]string{true: "!"}[not]+strings.Trim(word, `"`))
			}
		}
		if patterns == nil {
			continue
		}
		known++
		if test == nil || !test(patterns) {
			return false
		}
	}
	return known > 0
}

func (l Link) hasMAC(list []string) bool {
	return slices.ContainsFunc(list, func(m string) bool {
		return strings.EqualFold(strings.NewReplacer(":", "", "-", "", ".", "").Replace(m), strings.ReplaceAll(l.MAC, ":", ""))
	})
}

// globs reports whether patterns select one of the names: none that begins with "!", and one of the others, if there are others
// (net_condition_test_strv).
func globs(patterns []string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		positive, found := false, false
		for _, p := range patterns {
			p, not := strings.CutPrefix(p, "!")
			hit, _ := path.Match(strings.ReplaceAll(p, "[!", "[^"), name)
			if hit && not {
				return false
			}
			positive, found = positive || !not, found || hit && !not
		}
		return found || !positive
	})
}

// Driver returns the driver of the adapter.
func (p Port) Driver() string {
	if p.HCA != nil {
		return "mlx5_core"
	}
	return "vmxnet3"
}

// LinkFile returns the first .link file for an adapter among those that may count, and the name that it assigns; "" for none.
func LinkFile(fs *vfs.FS, p Port, name, host string, may func(file string) bool) (file, rename string) {
	for _, u := range units(fs, ".link", false) {
		if may(u.file) && u.fits(Link{Port: p, Name: name}, "OriginalName", host) {
			return u.file, u.get("Link", "Name")
		}
	}
	return "", ""
}
