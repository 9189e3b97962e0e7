package netif

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

var errRefused = errors.New("the device could not be readied for configuration")

const timestamps = "/var/lib/NetworkManager/timestamps"

// NetworkManager starts the program where it is installed: it reads the profiles and activates the best one on each device.
func (c *Config) NetworkManager() {
	if c.Netplan && !c.hasNM() {
		return
	}
	c.nm.turn.Lock()
	defer c.nm.turn.Unlock()
	c.nm.reset()
	c.nmReload()
	c.nmDefaults()
	for _, l := range c.Stack.Links() {
		if con := c.best(l); con != nil {
			_ = c.nmUp(con, l) // a profile that the device refuses stays inactive
		}
	}
}

// hasNM reports whether a guest with netplan also has NetworkManager.
func (c *Config) hasNM() bool {
	_, err := c.FS.Stat(vfs.Root(), "/etc/NetworkManager")
	return err == nil && !c.masked("NetworkManager")
}

// masked reports whether a service can never start (systemctl(1), mask).
func (c *Config) masked(service string) bool {
	to, err := c.FS.Readlink(vfs.Root(), "/etc/systemd/system/"+service+".service")
	return err == nil && to == "/dev/null"
}

// nmDefaults adds the profiles "Wired connection N" that NetworkManager keeps in memory for devices without one that fits
// (NetworkManager.conf(5), no-auto-default).
func (c *Config) nmDefaults() {
	not := c.nmConf()["main.no-auto-default"]
	for _, l := range c.Stack.Links() {
		fits := func(o *connection) bool { return o.misfit(l) == "" }
		if devices(not, l) || c.unmanaged(l) || slices.ContainsFunc(c.nm.list(), fits) {
			continue
		}
		c.nm.put(&connection{set: map[string]string{"connection.id": fmt.Sprintf("Wired connection %d", len(c.nm.list())+1),
			"connection.type": "ethernet",
			"connection.uuid": uuid(l.MAC), "802-3-ethernet.mac-address": l.MAC, "connection.autoconnect-priority": "-999", "ipv4.method": "auto"}})
	}
}

// best returns the inactive profile that NetworkManager activates on a device by itself: the one with the highest priority, among
// equals the one used last.
func (c *Config) best(l Link) *connection {
	if c.unmanaged(l) || !l.Connected {
		return nil
	}
	used := c.used()
	list := slices.DeleteFunc(c.nm.list(), func(o *connection) bool {
		auto := o.get("connection.autoconnect")
		return auto == "no" || auto == "false" || o.device != "" || o.misfit(l) != ""
	})
	if len(list) == 0 {
		return nil
	}
	return slices.MaxFunc(list, func(a, b *connection) int {
		return cmp.Or(cmp.Compare(a.priority(), b.priority()), cmp.Compare(used[a.get("connection.uuid")], used[b.get("connection.uuid")]))
	})
}

// used returns when each profile was active last, in seconds, by its UUID.
func (c *Config) used() map[string]int64 {
	data, _ := c.FS.ReadFile(vfs.Root(), timestamps) // missing before the first activation
	last := map[string]int64{}
	for key, value := range shellVars(string(data)) {
		last[key], _ = strconv.ParseInt(value, 10, 64)
	}
	return last
}

func (c *Config) use(con *connection) {
	last := c.used()
	now := c.Now().Unix()
	for _, t := range last {
		now = max(now, t+1) // the lab may activate two in one second
	}
	last[con.get("connection.uuid")] = now
	text := "[timestamps]\n"
	for _, id := range slices.Sorted(maps.Keys(last)) {
		text += fmt.Sprintf("%s=%d\n", id, last[id])
	}
	if c.FS.MkdirAll(vfs.Root(), "/var/lib/NetworkManager", 0o755) == nil {
		_ = c.FS.WriteFile(vfs.Root(), timestamps, []byte(text), 0o644) // then the next boot prefers another profile
	}
}

// misfit says why a profile cannot be active on a device; "" if it can.
func (c *connection) misfit(l Link) string {
	mac, name := c.get("802-3-ethernet.mac-address"), c.get("connection.interface-name")
	patterns := strings.FieldsFunc(c.get("match.interface-name"), func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
	drivers := strings.FieldsFunc(c.get("match.driver"), func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
	switch {
	case c.kind() != "ethernet":
		return "mismatching type"
	case name != "" && name != l.Name, patterns != nil && !globs(patterns, l.Name):
		return "mismatching interface name"
	case mac != "" && !strings.EqualFold(mac, l.MAC):
		return "mismatching MAC address"
	case drivers != nil && !globs(drivers, l.Driver()):
		return "mismatching driver"
	}
	return ""
}

// nmConf returns the settings of NetworkManager by SECTION.KEY: a file in /etc hides the same name in /run and /usr/lib, and the
// main file is read last but for /etc/NetworkManager/conf.d (NetworkManager.conf(5)).
func (c *Config) nmConf() map[string]string {
	set := map[string]string{}
	files := named(c.FS, []string{"/etc/NetworkManager/conf.d", "/run/NetworkManager/conf.d", "/usr/lib/NetworkManager/conf.d"}, ".conf")
	order := slices.Sorted(maps.Keys(files))
	slices.SortStableFunc(order, func(a, b string) int {
		rank := func(n string) bool { return strings.HasPrefix(files[n], "/etc/") }
		return map[bool]int{false: 0, true: 1}[rank(a)] - map[bool]int{false: 0, true: 1}[rank(b)]
	})
	read := func(file string) {
		data, _ := c.FS.ReadFile(vfs.Root(), file) // one that cannot be read counts as empty
		for _, s := range sections(string(data)) {
			for _, k := range s.keys {
				key, more := strings.CutSuffix(s.name+"."+k[0], "+")
				if more && set[key] != "" {
					k[1] = set[key] + ";" + k[1]
				}
				set[key] = k[1]
			}
		}
	}
	main := false
	for _, name := range order {
		if strings.HasPrefix(files[name], "/etc/") && !main {
			read("/etc/NetworkManager/NetworkManager.conf")
			main = true
		}
		read(files[name])
	}
	if !main {
		read("/etc/NetworkManager/NetworkManager.conf")
	}
	return set
}

// devices reports whether a list of devices of NetworkManager.conf(5), "Device List Format", contains an interface.
func devices(list string, l Link) bool {
	found := false
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
		word, except := strings.CutPrefix(word, "except:")
		kind, value, _ := strings.Cut(word, ":")
		hit := false
		switch {
		case word == "*":
			hit = true
		case kind == "interface-name" && strings.HasPrefix(value, "="):
			hit = value[1:] == l.Name
		case kind == "interface-name":
			hit = globs([]string{strings.TrimPrefix(value, "~")}, l.Name)
		case kind == "mac":
			hit = strings.EqualFold(value, l.MAC)
		case kind == "driver":
			hit = globs([]string{value}, l.Driver())
		case kind == "type":
			hit = value == "ethernet"
		default:
			hit = word == l.Name || strings.EqualFold(word, l.MAC)
		}
		if hit && except {
			return false
		}
		found = found || hit
	}
	return found
}

// unmanaged reports whether NetworkManager has to leave a device alone: by its configuration, by an ifcfg file with
// NM_CONTROLLED=no, or by a rule of udev.
func (c *Config) unmanaged(l Link) bool {
	conf := c.nmConf()
	if devices(conf["keyfile.unmanaged-devices"], l) || c.uncontrolled(l) || c.ofIfupdown(conf, l) {
		return true
	}
	for key, value := range conf {
		if name, ok := strings.CutSuffix(key, ".managed"); ok && strings.HasPrefix(name, "device") &&
			devices(cmp.Or(conf[name+".match-device"], "*"), l) {
			return !isYes(value)
		}
	}
	return c.ruled(l)
}

func (c *Config) uncontrolled(l Link) bool {
	list, err := c.FS.ReadDir(vfs.Root(), ifcfgs)
	return err == nil && slices.ContainsFunc(list, func(i vfs.Info) bool {
		data, _ := c.FS.ReadFile(vfs.Root(), ifcfgs+"/"+i.Name()) // one that cannot be read counts as empty
		v := shellVars(string(data))
		return strings.HasPrefix(i.Name(), "ifcfg-") && strings.EqualFold(v["NM_CONTROLLED"], "no") &&
			(strings.EqualFold(v["HWADDR"], l.MAC) || v["HWADDR"] == "" && v["DEVICE"] == l.Name)
	})
}

// ofIfupdown reports whether the plugin ifupdown leaves a device to the files of that (NetworkManager.conf(5), section ifupdown).
func (c *Config) ofIfupdown(conf map[string]string, l Link) bool {
	data, err := c.FS.ReadFile(vfs.Root(), "/etc/network/interfaces")
	return err == nil && strings.Contains(conf["main.plugins"], "ifupdown") && !isYes(conf["ifupdown.managed"]) &&
		regexp.MustCompile(`(?m)^\s*iface\s+`+regexp.QuoteMeta(l.Name)+`\s`).Match(data)
}

var ruleMatch = regexp.MustCompile(`([A-Z]+(?:\{[^}]*\})?)==\s*"([^"]*)"`)

// ruled reports whether udev's rules, of which the last decides, set NM_UNMANAGED for an interface.
func (c *Config) ruled(l Link) (unmanaged bool) {
	files := named(c.FS, []string{"/etc/udev/rules.d", "/run/udev/rules.d", "/usr/lib/udev/rules.d"}, ".rules")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data, _ := c.FS.ReadFile(vfs.Root(), files[name]) // one that cannot be read counts as empty
		for line := range strings.Lines(string(data)) {
			_, value, ok := strings.Cut(line, `ENV{NM_UNMANAGED}="`)
			if !ok || strings.HasPrefix(line, "#") {
				continue
			}
			hit := true
			for _, m := range ruleMatch.FindAllStringSubmatch(line, -1) {
				is, known := map[string]string{"ENV{ID_NET_NAME}": l.Name, "KERNEL": l.Name, "ATTR{address}": l.MAC, "ENV{ID_NET_DRIVER}": l.Driver(),
					"DRIVERS": l.Driver()}[m[1]]
				hit = hit && (!known || globs(strings.Split(m[2], "|"), is))
			}
			if hit {
				unmanaged = strings.HasPrefix(value, "1")
			}
		}
	}
	return unmanaged
}

// nmUp activates a profile on a device.
func (c *Config) nmUp(con *connection, l Link) error {
	master, vrf := cmp.Or(con.get("connection.master"), con.get("connection.controller")),
		con.get("connection.slave-type")+con.get("connection.port-type") == "vrf"
	var addrs []Addr
	for _, a := range strings.FieldsFunc(con.get("ipv4.addresses"), func(r rune) bool { return r == ',' || r == ' ' }) {
		if p, err := netip.ParsePrefix(a); err == nil {
			addrs = append(addrs, Addr{Prefix: p})
		}
	}
	if method := con.get("ipv4.method"); method == "auto" || method == "" {
		if p, ok := c.DHCP(l.MAC); ok {
			addrs = append(addrs, Addr{Prefix: p, DHCP: true, NoRoutes: isYes(con.get("ipv4.never-default"))})
		}
	}
	if master != "" && !vrf {
		addrs = nil // a port of a bond, bridge or team has none (nm_connection_normalize)
	}
	mtu, _ := strconv.Atoi(con.get("802-3-ethernet.mtu"))
	if err := c.Stack.Configure(l.Name, addrs, mtu); err != nil {
		return errRefused
	}
	_ = c.Stack.change(l.Name, func(l *Link) error { l.Master = master; return nil })
	c.follow(l.Name, con.policies())
	for _, other := range c.nm.list() {
		if other.device == l.Name {
			other.device = ""
		}
	}
	con.device = l.Name
	c.use(con)
	return nil
}
