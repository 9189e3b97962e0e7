package netconf

import (
	"cmp"
	"crypto/sha1"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// priority is that of this program's profiles: the highest that NetworkManager accepts (nm-settings(5): autoconnect-priority).
const priority = 999

// ConnectionUUID returns the UUID of the NetworkManager connection of a port group; always the same for the same adapter.
func ConnectionUUID(a Static) string {
	b := sha1.Sum([]byte("rdma-setup/" + a.PortGroup + "/" + strings.ToLower(a.MAC)))
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// keyfileText returns a NetworkManager keyfile for one interface, matched by its MAC. It has priority over other profiles for the
// interface, and never sets a default route; with DHCP it accepts no routes or DNS servers (nm-settings(5): never-default,
// ignore-auto-routes, ignore-auto-dns).
func keyfileText(a Static) string {
	method := "method=manual\naddress1=" + a.CIDR
	if a.CIDR == backends.DHCP {
		method = "method=auto\nignore-auto-routes=true\nignore-auto-dns=true"
	}
	return comment(a) + fmt.Sprintf(`[connection]
id=rdma-setup-%s
uuid=%s
type=ethernet
autoconnect=true
autoconnect-priority=%d

[ethernet]
mac-address=%s
mtu=%d

[ipv4]
%s
never-default=true

[ipv6]
method=link-local
`, backends.Slug(a.PortGroup), ConnectionUUID(a), priority, strings.ToUpper(a.MAC), a.MTU, method+a.keyfileRule())
}

// keyfileRule is a rule for packets from the address, with its route (NetworkManager, nm-settings-keyfile(5); netplan,
// tests/generator/test_routing.py, has such lines; rules since NetworkManager 1.18).
func (a Static) keyfileRule() string {
	from, subnet, ok := a.rule()
	if !ok {
		return ""
	}
	return fmt.Sprintf("\nroute1=%[2]s\nroute1_options=table=%[3]d,src=%[1]s\nrouting-rule1=priority %[3]d from %[1]s/32 table %[3]d", from,
		subnet, a.Table)
}

// networkManager is NetworkManager: of the profiles that fit an interface and start by themselves, that with the highest priority
// decides; among several of one priority the last used, which no file says.
type networkManager struct{}

func (networkManager) own(a Static) string {
	return "/etc/NetworkManager/system-connections/rdma-setup-" + backends.Slug(a.PortGroup) + ".nmconnection"
}

func (p networkManager) add(files []File, links []Link, a Static) (File, error) {
	for _, c := range profiles(files) {
		if l, ok := linkOf(links, a.NIC); ok && c.fits(l) && c.priority >= priority {
			return File{}, &Refusal{File: c.File, Why: fmt.Sprintf("the profile %s also fits %s and has the highest priority, %d", c.ID, a.Name,
				c.priority),
				Hint: "Lower its connection.autoconnect-priority, or restrict it to its own interface."}
		}
	}
	return File{p.own(a), keyfileText(a)}, nil
}

// A profile is a connection of NetworkManager.
type profile struct {
	Effective
	priority int
	uuid     string
	parent   string // of a VLAN
	fits     func(Link) bool
}

// keyfileDirs are the directories of profiles; one with the same UUID in an earlier directory hides the others
// (NetworkManager.conf(5), plugin keyfile).
var keyfileDirs = []string{"/etc/NetworkManager/system-connections", "/run/NetworkManager/system-connections",
	"/usr/lib/NetworkManager/system-connections"}

// profiles returns the profiles that may start by themselves, in the order in which they are preferred.
func profiles(files []File) (all []profile) {
	uuids := map[string]bool{}
	for i, dir := range keyfileDirs {
		for _, f := range files {
			if uuid, is := strings.CutSuffix(path.Base(f.Path), ".nmmeta"); is && path.Dir(f.Path) == dir && f.Content == "" {
				uuids[uuid] = true // a link to /dev/null: somebody has deleted the profile (NetworkManager, nms-keyfile-utils.c: nmmeta)
			}
			suffix := strings.HasSuffix(f.Path, ".nmconnection")
			if path.Dir(f.Path) != dir ||
				!suffix && (i > 0 || path.Base(f.Path)[0] == '.' || path.Ext(f.Path) == ".nmmeta" || strings.HasSuffix(f.Path, "~")) {
				continue
			}
			c := keyfile(f)
			if c.fits != nil && !(c.uuid != "" && uuids[c.uuid]) {
				all = append(all, c)
			}
			uuids[c.uuid] = true
		}
	}
	for _, f := range files {
		if strings.HasPrefix(f.Path, scripts+"ifcfg-") {
			v := shellVars(f.Content)
			c := profile{Effective: v.says(f), fits: v.fits}
			c.priority, _ = strconv.Atoi(v["AUTOCONNECT_PRIORITY"])
			if !strings.EqualFold(v["ONBOOT"], "no") && !strings.EqualFold(v["NM_CONTROLLED"], "no") {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b profile) int { return cmp.Or(b.priority-a.priority, cmp.Compare(a.File, b.File)) })
	return all
}

// keyfile reads a profile; without fits if it is for no wired interface or does not start by itself.
func keyfile(f File) (c profile) {
	s := parseINI(f.Content)
	hw := func(key string) string { return s.get("ethernet", key) + s.get("802-3-ethernet", key) }
	c.Effective = Effective{File: f.Path, ID: cmp.Or(s.get("connection", "id"), strings.TrimSuffix(path.Base(f.Path), ".nmconnection")),
		Renderer: NetworkManager, Unsure: s.get("match", "kernel-command-line") != ""}
	c.uuid = s.get("connection", "uuid")
	c.priority, _ = strconv.Atoi(s.get("connection", "autoconnect-priority"))
	if c.priority < -999 || c.priority > 999 {
		c.priority = 0 // as NetworkManager 1.42 reads it
	}
	c.parent = s.get("vlan", "parent") + s.get("macvlan", "parent")
	c.MTU, _ = strconv.Atoi(hw("mtu"))
	c.Master = s.get("connection", "controller", "master")
	// A port of a bond, bridge or team has no addresses of its own (NetworkManager, nm_connection_normalize); one of a VRF has.
	if c.Master == "" || s.get("connection", "port-type", "slave-type") == "vrf" {
		c.ip(s, "ipv4")
		c.ip(s, "ipv6")
	}
	kind, auto := s.get("connection", "type"), s.get("connection", "autoconnect")
	name := s.get("connection", "interface-name")
	switch {
	case auto != "" && !yes(auto):
	case kind == "ethernet", kind == "802-3-ethernet":
		mac, not := strings.ToLower(hw("mac-address")), strings.ToLower(hw("mac-address-denylist")+hw("mac-address-blacklist"))
		match := func(key, value string) bool {
			return matchSpecs(strings.FieldsFunc(s.get("match", key), semicolon), value)
		}
		c.fits = func(l Link) bool {
			return l.Type == "" && (l.Device || name == l.Name) && (mac == "" || mac == l.MAC) && (name == "" || name == l.Name) &&
				!slices.Contains(strings.FieldsFunc(not, semicolon), l.MAC) &&
				match("interface-name", l.Name) && match("driver", l.Driver) && match("path", l.Path)
		}
	case name != "": // a virtual interface
		c.fits = func(l Link) bool { return !l.Device && l.Name == name }
	}
	return c
}

func semicolon(r rune) bool { return r == ';' || r == ',' || r == '\n' }

// matchSpecs matches the lists of section [match] (nm-settings(5)): "|" is one of several, which is the default, "&" is
// required, "!" negates; a negated one is required unless it has "|".
func matchSpecs(patterns []string, value string) bool {
	some, matched := false, false
	for _, p := range patterns {
		p = strings.TrimSpace(p)
		p, required := strings.CutPrefix(p, "&")
		p, optional := strings.CutPrefix(p, "|")
		p, not := strings.CutPrefix(p, "!")
		is := glob(strings.TrimPrefix(p, "\\"), value) != not
		if required || not && !optional {
			if !is {
				return false
			}
			continue
		}
		some, matched = true, matched || is
	}
	return matched || !some
}

// ip adds the settings of a section: address1=192.168.1.5/24,192.168.1.1 and route1=10.0.0.0/8,192.168.1.1 (nm-settings-keyfile(5)).
func (e *Effective) ip(s ini, section string) {
	switch s.get(section, "method") {
	case "auto":
		e.DHCP4, e.DHCP6 = e.DHCP4 || section == "ipv4", e.DHCP6 || section == "ipv6"
	case "dhcp":
		e.DHCP6 = true
	}
	if g := s.get(section, "gateway"); g != "" {
		e.Routes = append(e.Routes, "default via "+g)
	}
	for _, d := range s.all(section, "dns") {
		e.DNS = append(e.DNS, strings.FieldsFunc(d, semicolon)...)
	}
	for _, part := range s {
		if part.name != section {
			continue
		}
		for _, kv := range part.settings {
			w := append(strings.Split(kv[1], ","), "", "")
			switch key := strings.TrimRight(kv[0], "0123456789"); {
			case key == "addresses", key == "address":
				if ip, old, is := strings.Cut(kv[1], ";"); is && old != "" && !strings.Contains(old, "/") { // 10.0.0.5;24;10.0.0.1;
					kv[1] = ip + "/" + strings.TrimRight(strings.Replace(old, ";", ",", 1), ";,")
				}
				for a := range strings.SplitSeq(kv[1], ";") {
					a, gateway, _ := strings.Cut(a, ",")
					e.address(a)
					if gateway != "" && gateway != "0.0.0.0" && gateway != "::" {
						e.Routes = append(e.Routes, "default via "+gateway)
					}
				}
			case key == "route":
				_, options, _ := strings.Cut(string(s.get(section, kv[0]+"_options")), "table=")
				table, _, _ := strings.Cut(options, ",")
				e.route(w[0], w[1], table)
			case key == "routing-rule" && section == "ipv4":
				e.ruleOf(strings.Fields(kv[1]))
			}
		}
	}
}

// Effective implements Program.
func (networkManager) Effective(files []File, links []Link) (all []Effective, err error) {
	found, conf := profiles(files), configured(files)
	for _, l := range links {
		e := Effective{Link: l.Name, Renderer: NetworkManager}
		at := slices.IndexFunc(found, func(c profile) bool { return c.fits(l) })
		last := slices.IndexFunc(found, func(c profile) bool { return c.fits(l) && slices.Contains(l.Now, c.File) })
		if last >= 0 && found[last].priority == found[at].priority {
			at = last // of one priority the last used (nm-settings(5), autoconnect-priority)
		}
		if at >= 0 {
			e = found[at].Effective
			e.Link = l.Name
			for _, c := range found {
				if c.parent != "" && (c.parent == l.Name || c.parent == found[at].uuid) {
					e.Uppers = append(e.Uppers, c.ID)
				}
			}
		}
		if by := conf.unmanaged(l); by != "" {
			e = Effective{Link: l.Name, Renderer: NetworkManager, File: by, Unmanaged: true}
		}
		all = append(all, e)
	}
	return all, nil
}

// An nmConf is the part of NetworkManager's configuration that says which interfaces it manages: its devices by file, and foreign files.
type nmConf []struct {
	by      string
	devices func(Link) bool
	managed bool
}

// configured reads the configuration: /usr/lib, then /run, then NetworkManager.conf, then /etc, and a file hides one of the same name in
// another directory (NetworkManager.conf(5)).
func configured(files []File) (c nmConf) {
	const base = "/NetworkManager/conf.d"
	confs := first(files, ".conf", []string{"/etc" + base, "/run" + base, "/usr/lib" + base})
	rank := func(f File) int {
		return slices.Index([]string{"/usr/lib" + base, "/run" + base, "/etc/NetworkManager", "/etc" + base}, path.Dir(f.Path))
	}
	for _, f := range files {
		if f.Path == "/etc/NetworkManager/NetworkManager.conf" {
			confs = append(confs, f)
		}
	}
	slices.SortStableFunc(confs, func(a, b File) int { return cmp.Compare(rank(a), rank(b)) })
	add := func(by string, managed bool, devices func(Link) bool) {
		c = append(c, struct {
			by      string
			devices func(Link) bool
			managed bool
		}{by, devices, managed})
	}
	var unmanaged []string
	by, plugins, ifupdown := "", "", false
	for _, f := range confs {
		for _, s := range parseINI(f.Content) {
			for _, kv := range s.settings {
				specs := strings.FieldsFunc(kv[1], semicolon)
				switch {
				case s.name == "keyfile" && kv[0] == "unmanaged-devices":
					unmanaged, by = specs, f.Path
				case s.name == "keyfile" && kv[0] == "unmanaged-devices+":
					unmanaged, by = append(unmanaged, specs...), f.Path
				case s.name == "main" && kv[0] == "plugins":
					plugins = kv[1]
				case s.name == "ifupdown" && kv[0] == "managed":
					ifupdown = yes(kv[1])
				case strings.HasPrefix(s.name, "device") && kv[0] == "managed":
					match := strings.FieldsFunc(s.get("match-device"), semicolon)
					add(f.Path, yes(kv[1]), func(l Link) bool { return len(match) == 0 || deviceSpecs(match, l) })
				}
			}
		}
	}
	add(by, false, func(l Link) bool { return deviceSpecs(unmanaged, l) })
	for _, f := range files {
		if strings.HasPrefix(f.Path, scripts+"ifcfg-") {
			if v := shellVars(f.Content); strings.EqualFold(v["NM_CONTROLLED"], "no") {
				add(f.Path, false, v.fits)
			}
		}
	}
	if strings.Contains(plugins, "ifupdown") && !ifupdown { // the plugin of Debian: README.Debian of network-manager
		for _, s := range interfacesOf(files) {
			if s.kind == "iface" {
				add(s.file, false, func(l Link) bool { return l.Name == s.name })
			}
		}
	}
	return c
}

// unmanaged returns the file that says that NetworkManager must leave the interface alone.
func (c nmConf) unmanaged(l Link) (by string) {
	for _, s := range c {
		if s.devices(l) && l.Type == "" {
			by = s.by
			if s.managed {
				by = ""
			}
		}
	}
	return by
}

// deviceSpecs matches a "Device List Format" (NetworkManager.conf(5)): what is excepted goes before.
func deviceSpecs(specs []string, l Link) (is bool) {
	for _, spec := range specs {
		spec, except := strings.CutPrefix(strings.TrimSpace(spec), "except:")
		if deviceSpec(spec, l) {
			if except {
				return false
			}
			is = true
		}
	}
	return is
}

func deviceSpec(spec string, l Link) bool {
	key, value, ok := strings.Cut(spec, ":")
	switch {
	case spec == "*":
		return true
	case strings.EqualFold(spec, l.MAC), ok && key == "mac" && strings.EqualFold(value, l.MAC):
		return true
	case ok && key == "interface-name":
		if exact, ok := strings.CutPrefix(value, "="); ok {
			return exact == l.Name
		}
		return glob(strings.TrimPrefix(value, "~"), l.Name)
	case ok && key == "type":
		return value == cmp.Or(l.Type, "ethernet")
	case ok && key == "driver":
		return glob(value, l.Driver)
	}
	return glob(spec, l.Name) && !ok
}
