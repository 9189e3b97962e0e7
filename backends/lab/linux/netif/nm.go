package netif

import (
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

const (
	keyfiles = "/etc/NetworkManager/system-connections"
	ifcfgs   = "/etc/sysconfig/network-scripts"
)

// connection is a profile of NetworkManager, with settings by SECTION.KEY.
type connection struct {
	set    map[string]string
	file   string
	device string // device on which the profile is active
	wired  bool   // has a section for Ethernet
}

func (c *connection) get(key string) string { return c.set[key] }
func (c *connection) id() string            { return c.set["connection.id"] }

// manager is the state of NetworkManager.
type manager struct {
	turn sync.Mutex // serialises requests
	mu   sync.Mutex
	all  []*connection
}

func (m *manager) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = nil
}

func (m *manager) list() []*connection {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

func (m *manager) find(name string) *connection {
	for _, c := range m.list() {
		if c.id() == name || c.set["connection.uuid"] == name {
			return c
		}
	}
	return nil
}

func (m *manager) put(c *connection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, c)
}

// nmReload reads the profiles from their files: a UUID in /etc hides the same one in /run and /usr/lib. Like NetworkManager, it
// ignores files that other users can read (nm-settings-keyfile(5)).
func (c *Config) nmReload() {
	var fresh []*connection
	deleted := map[string]bool{} // UUIDs of profiles below /usr/lib, by links to /dev/null (NetworkManager, nms-keyfile-utils.c: nmmeta)
	for _, dir := range []string{keyfiles, ifcfgs, "/run/NetworkManager/system-connections", "/usr/lib/NetworkManager/system-connections"} {
		list, err := c.FS.ReadDir(vfs.Root(), dir)
		if err != nil {
			continue
		}
		for _, i := range list {
			file := path.Join(dir, i.Name())
			data, err := c.FS.ReadFile(vfs.Root(), file)
			var con *connection
			switch {
			case strings.HasSuffix(i.Name(), ".nmmeta") && len(data) == 0:
				deleted[strings.TrimSuffix(i.Name(), ".nmmeta")] = true
			case err != nil || strings.HasPrefix(i.Name(), ".") || strings.HasSuffix(i.Name(), "~"):
			case dir == ifcfgs && strings.HasPrefix(i.Name(), "ifcfg-"):
				con = parseIfcfg(string(data))
			case dir != ifcfgs && (dir == keyfiles || strings.HasSuffix(i.Name(), ".nmconnection")) && i.Mode()&0o077 == 0 && i.UID == 0:
				con = parseKeyfile(string(data))
				con.defaults("connection.id", strings.TrimSuffix(i.Name(), ".nmconnection"))
				con.defaults("connection.uuid", uuid(file))
			}
			same := func(o *connection) bool { return con != nil && o.set["connection.uuid"] == con.set["connection.uuid"] }
			if con == nil || con.kind() == "" || deleted[con.set["connection.uuid"]] || slices.ContainsFunc(fresh, same) {
				continue
			}
			con.file = file
			if old := c.nm.find(con.set["connection.uuid"]); old != nil {
				con.device = old.device
			}
			fresh = append(fresh, con)
		}
	}
	for _, old := range c.nm.list() {
		if old.file == "" {
			fresh = append(fresh, old) // only in memory
		}
	}
	c.nm.mu.Lock()
	c.nm.all = fresh
	c.nm.mu.Unlock()
}

func (c *connection) defaults(key, value string) {
	if c.set[key] == "" {
		c.set[key] = value
	}
}

// kind returns the type of a profile, which a section may tell; "" for none, with which NetworkManager ignores the file.
func (c *connection) kind() string {
	if kind := strings.TrimPrefix(c.set["connection.type"], "802-3-"); kind != "" || !c.wired {
		return kind
	}
	return "ethernet"
}

// priority returns the value by which NetworkManager prefers a profile. It ignores values out of range (nm-settings(5),
// connection.autoconnect-priority; NetworkManager 1.42 shows 0 for 1000).
func (c *connection) priority() int {
	n, err := strconv.Atoi(c.set["connection.autoconnect-priority"])
	if err != nil || n < -999 || n > 999 {
		return 0
	}
	return n
}

// longName converts the name of a setting in the keyfile format to nmcli's name.
func longName(key string) string {
	if name, ok := strings.CutPrefix(key, "ethernet."); ok {
		return "802-3-ethernet." + name
	}
	return key
}

func parseKeyfile(text string) *connection {
	con := &connection{set: map[string]string{}}
	section := ""
	var addrs []string
	var rules []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			con.wired = con.wired || section == "ethernet" || section == "802-3-ethernet"
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if section == "ipv4" && strings.HasPrefix(key, "address") {
			value, _, _ = strings.Cut(value, ",")
			addrs = append(addrs, value)
			continue
		}
		if section == "ipv4" && strings.HasPrefix(key, "routing-rule") {
			rules = append(rules, value)
			continue
		}
		con.set[longName(section+"."+key)] = value
	}
	if rules != nil {
		con.set["ipv4.routing-rules"] = strings.Join(rules, ", ")
	}
	if addrs != nil {
		con.set["ipv4.addresses"] = strings.Join(addrs, ",")
	}
	return con
}

// shellVars reads the lines KEY=VALUE of a file for a shell.
func shellVars(text string) map[string]string {
	v := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			v[key] = strings.Trim(value, `"'`)
		}
	}
	return v
}

// parseIfcfg parses the ifcfg files of EL; nil if NetworkManager has to leave the device alone.
func parseIfcfg(text string) *connection {
	v := shellVars(text)
	if strings.EqualFold(v["NM_CONTROLLED"], "no") {
		return nil
	}
	name := v["NAME"]
	if name == "" {
		name = "System " + v["DEVICE"]
	}
	con := &connection{set: map[string]string{"connection.id": name, "connection.uuid": v["UUID"], "connection.type": "802-3-ethernet",
		"connection.interface-name": v["DEVICE"], "802-3-ethernet.mac-address": v["HWADDR"], "ipv4.method": "auto"}}
	if con.set["connection.uuid"] == "" {
		con.set["connection.uuid"] = "ifcfg-" + v["DEVICE"]
	}
	if v["DEFROUTE"] == "no" {
		con.set["ipv4.never-default"] = "yes"
	}
	if v["MTU"] != "" {
		con.set["802-3-ethernet.mtu"] = v["MTU"]
	}
	if v["IPADDR"] != "" && v["BOOTPROTO"] != "dhcp" {
		prefix := v["PREFIX"]
		if prefix == "" {
			prefix = "24"
		}
		con.set["ipv4.method"], con.set["ipv4.addresses"] = "manual", v["IPADDR"]+"/"+prefix
	}
	if master := v["MASTER"] + v["BRIDGE"] + v["TEAM_MASTER"]; master != "" {
		con.set["connection.master"] = master
	}
	if strings.EqualFold(v["ONBOOT"], "no") {
		con.set["connection.autoconnect"] = "no"
	}
	return con
}

// policies returns the rules, and the routes with a table, of a profile (nm-settings-keyfile(5)). NetworkManager adds rules
// without a protocol, and routes with the protocol static.
func (c *connection) policies() (out policies) {
	for rule := range strings.SplitSeq(c.get("ipv4.routing-rules"), ",") {
		set, _ := words(strings.Fields(rule), "priority", "from", "table")
		from, ok := prefixOf(set["from"])
		table, is := tableOf(set["table"])
		priority, err := strconv.Atoi(set["priority"])
		if ok && is && err == nil {
			out.rules = append(out.rules, Rule{Priority: priority, From: from, Table: table})
		}
	}
	for i := 1; c.get("ipv4.route"+strconv.Itoa(i)) != ""; i++ {
		to, _, _ := strings.Cut(c.get("ipv4.route"+strconv.Itoa(i)), ",")
		r := TableRoute{Proto: "static"}
		r.To, _ = prefixOf(to)
		for option := range strings.SplitSeq(c.get("ipv4.route"+strconv.Itoa(i)+"_options"), ",") {
			switch key, value, _ := strings.Cut(option, "="); key {
			case "table":
				r.Table, _ = tableOf(value)
			case "src":
				r.Src, _ = netip.ParseAddr(value)
			}
		}
		if r.To.IsValid() && r.Table != 0 {
			out.routes = append(out.routes, r)
		}
	}
	return out
}
