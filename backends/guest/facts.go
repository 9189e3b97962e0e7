package guest

import (
	"cmp"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// fill turns the sections of a survey into facts, and returns the network.
func (f facts) fill(g *backends.Guest, o Options) network {
	release := assignments(f["os"])
	g.OS, g.Version, g.Pretty = release["ID"], release["VERSION_ID"], release["PRETTY_NAME"]
	g.Like = strings.Fields(release["ID_LIKE"])
	g.Kernel, g.Arch = f.line("kernel"), f.line("arch")
	if m := f.line("managers"); m != "" {
		g.PackageManager = strings.TrimSuffix(path.Base(m), "-get")
	}
	if f.knowsPackages() {
		g.Packages = f.packages(strings.Split(strings.ReplaceAll(strings.Join(o.Packages, "\n"), "KERNEL", g.Kernel), "\n"))
	}
	if fixed := f.builtIn(); len(fixed) > 0 {
		g.BuiltIn = ordered(o.Modules, fixed)
	}
	g.Loaded = ordered(o.Modules, append(f.loaded(), g.BuiltIn...))
	g.Available = f.available(o.Modules)
	g.MemlockKB = memlockKB(f.line("memlock"))
	g.Perftest = perftestVersion(f["perftest"])
	g.MOFED, g.OFEDUnfinished = f.ofed()
	if o.Archives != nil {
		there := strings.Split(f["archives"], "\n")
		for _, file := range o.Archives() {
			if g.Archives == nil {
				g.Archives = map[string]bool{}
			}
			g.Archives[file] = slices.Contains(there, file)
		}
	}
	n := f.network()
	g.NetConfig = string(n.system)
	g.Interfaces = n.interfaces
	g.NetInvalid, g.NetShared = cmp.Or(n.invalid(trial(f["tried"])), n.pending()), n.shared
	g.NetRivals, _ = n.rivals()
	g.RouteNumbers = f.routeNumbers(&n)
	g.RDMA = f.devices(n.interfaces)
	if env := f.environment(g.RDMA); env.IsPartial() {
		g.AppClassPartly = true
	} else if class := 0; env.Decode(&class) == nil {
		g.AppClass = &class
	}
	g.Nouveau = f.nouveau()
	g.Persist = f.persist()
	g.NoQoSTool = strings.HasPrefix(strings.TrimSpace(f["qos"]), "no tool")
	f.health(g)
	f.builds(g)
	g.GPUUnit = f.gpuUnit()
	return n
}

// assignments parses KEY=value lines with shell quotes, as in os-release.
func assignments(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		k, v, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(k, "#") {
			continue
		}
		if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
			v = v[1 : len(v)-1]
		}
		m[k] = strings.NewReplacer(`\"`, `"`, `\$`, "$", "\\`", "`", `\\`, `\`).Replace(v)
	}
	return m
}

// knowsPackages reports whether the package manager has answered. dpkg-query ends with 0 and lists nothing without
// /var/lib/dpkg/status (dpkg 1.21.22), and a package is always there: dpkg or rpm itself.
func (f facts) knowsPackages() bool {
	whole := func(text, own string, field int) bool {
		found := false
		for line := range strings.Lines(text) {
			parts := strings.Split(strings.TrimSpace(line), "|")
			found = found || len(parts) > field && parts[field] == own
			if parts[0] == "!" {
				return false
			}
		}
		return found
	}
	return whole(f["dpkg"], "dpkg", 1) || whole(f["rpm"], "rpm", 0)
}

// packages returns the installed version of each watched name. A name that another package provides (libmlx4-1 by
// ibverbs-providers) gets that package's version.
func (f facts) packages(watched []string) map[string]string {
	m := map[string]string{}
	for line := range strings.SplitSeq(f["dpkg"], "\n") {
		p := strings.SplitN(line, "|", 4)
		if len(p) != 4 || len(p[0]) < 2 || p[0][1] != 'i' {
			continue
		}
		if slices.Contains(watched, p[1]) {
			m[p[1]] = p[2]
		}
		for virtual := range strings.SplitSeq(p[3], ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(virtual), " ")
			if _, real := m[name]; !real && slices.Contains(watched, name) {
				m[name] = p[2]
			}
		}
	}
	for line := range strings.SplitSeq(f["rpm"], "\n") {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), "|"); ok && slices.Contains(watched, name) {
			m[name] = version
		}
	}
	return m
}

// installed returns the versions of all packages whose name matches. The survey has only the watched packages of rpm.
func (f facts) installed(name *regexp.Regexp) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(f["dpkg"]) {
		if p := strings.SplitN(line, "|", 4); len(p) == 4 && len(p[0]) > 1 && p[0][1] == 'i' && name.MatchString(p[1]) {
			m[p[1]] = p[2]
		}
	}
	for line := range strings.Lines(f["rpm"]) {
		if n, version, _ := strings.Cut(strings.TrimSpace(line), "|"); name.MatchString(n) {
			m[n] = version
		}
	}
	return m
}

// begun returns those names of which more than configuration files exist: installed, unpacked, half installed.
func (f facts) begun(names []string) []string {
	var list []string
	for line := range strings.SplitSeq(f["dpkg"], "\n") {
		p := strings.SplitN(line, "|", 4)
		if len(p) == 4 && len(p[0]) > 1 && p[0][1] != 'n' && p[0][1] != 'c' && slices.Contains(names, p[1]) {
			list = append(list, p[1])
		}
	}
	for line := range strings.SplitSeq(f["rpm"], "\n") {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), "|"); ok && slices.Contains(names, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// loaded returns the loaded modules, newest first, as the kernel lists them. Those that are built into the kernel are not among
// them; see builtIn.
func (f facts) loaded() []string {
	var names []string
	for line := range strings.Lines(f["modules"]) { // /proc/modules (proc(5)): the name comes first
		if name, _, ok := strings.Cut(line, " "); ok {
			names = append(names, name)
		}
	}
	return names
}

// memlockKB parses the output of ulimit -l: KB or "unlimited" (-1).
func memlockKB(s string) int64 {
	if s == "unlimited" {
		return -1
	}
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// perftestVersion returns the protocol version of "Version: 6.06".
func perftestVersion(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.TrimSpace(k), "version") {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// A network is a guest's network configuration and the system that manages it.
type network struct {
	system     netconf.System
	tools      []string // see netconf.Detect
	files      []netconf.File
	links      []netconf.Link
	effective  []netconf.Effective // what files say, by links; nil if they are invalid
	refusal    error               // why they are
	force      []netconf.Effective // see inForce
	shared     *backends.FileProblem
	routes     map[string][]string // static ones, by interface name
	interfaces []backends.Interface
	powered    bool              // the VM is powered off after this was read
	physical   map[string]bool   // by interface name
	master     map[string]string // bond or bridge, by interface name
	management map[string]string // why the interface must not be changed, by its name
	rules      map[string][]rule // of policy routing, by interface name
}

func (f facts) network() network {
	n := network{physical: map[string]bool{}, master: map[string]string{}, management: map[string]string{}, rules: map[string][]rule{},
		routes: map[string][]string{}}
	for _, k := range dumped(f["netfiles"]) {
		if !slices.ContainsFunc(n.files, func(f netconf.File) bool { return f.Path == k.Path }) {
			n.files = append(n.files, netconf.File{Path: k.Path, Content: string(k.Content)})
		}
	}
	n.tools = strings.Fields(f["netconfig"])
	n.system = netconf.Detect(n.tools, n.files)
	for line := range strings.SplitSeq(f["links"], "\n") {
		p := strings.Split(line, "|")
		if len(p) < 7 || p[0] == "lo" {
			continue
		}
		link := netconf.Link{Name: p[0], MAC: strings.ToLower(p[1]), Device: p[5] == "device"}
		if len(p) > 9 {
			link.Driver, link.Path, link.Type = p[7], p[8], p[9]
		}
		n.links = append(n.links, link)
		flags, _ := strconv.ParseUint(strings.TrimPrefix(p[3], "0x"), 16, 32)
		mtu, _ := strconv.Atoi(p[2])
		n.interfaces = append(n.interfaces, backends.Interface{
			Name: p[0], MAC: strings.ToLower(p[1]), MTU: mtu, Up: flags&1 != 0 && (p[4] == "up" || p[4] == "unknown"),
			Virtual: p[5] != "device",
		})
		n.physical[p[0]] = p[5] == "device"
		if p[6] != "-" {
			n.master[p[0]] = p[6]
		}
	}
	f.addAddresses(&n)
	f.names(&n)
	f.now(&n)
	n.decide()
	f.policies(&n)
	for i := range n.interfaces {
		n.judge(&n.interfaces[i])
	}
	return n
}

// addAddresses adds the output of ip addr, and notes which interfaces carry this program's connection and other management
// traffic.
func (f facts) addAddresses(n *network) {
	byIP := map[string]string{}
	for _, printed := range transcript.IPAddr(f["addresses"]).Interfaces {
		at := slices.IndexFunc(n.interfaces, func(i backends.Interface) bool { return i.Name == printed.Name })
		for _, a := range printed.Addresses {
			ip, err := netip.ParseAddr(a.Address)
			if err != nil || a.PrefixLen == nil || *a.PrefixLen > int64(ip.BitLen()) {
				continue
			}
			byIP[ip.String()] = printed.Name
			if at < 0 || ip.IsLinkLocalUnicast() {
				continue
			}
			i := &n.interfaces[at]
			i.Addresses = append(i.Addresses, netip.PrefixFrom(ip, int(*a.PrefixLen)).String())
			i.DHCP = i.DHCP || a.Family == "inet" && a.Dynamic
		}
	}
	if w := strings.Fields(f["connection"]); len(w) == 4 {
		if ip, err := netip.ParseAddr(w[2]); err == nil && byIP[ip.Unmap().String()] != "" {
			n.management[byIP[ip.Unmap().String()]] = "it carries this SSH connection"
		}
	}
	for line := range strings.SplitSeq(f["routes"], "\n") {
		w := strings.Fields(line)
		if i := slices.Index(w, "dev"); len(w) > 0 && w[0] == "default" && i >= 0 && i+1 < len(w) && n.management[w[i+1]] == "" {
			n.management[w[i+1]] = "it carries the default route"
		}
	}
}

// judge determines whether the current configuration of an interface is persistent.
func (n *network) judge(i *backends.Interface) {
	c, ok := n.of(i.Name)
	if !ok {
		return
	}
	i.Config = c.File
	if slices.ContainsFunc(n.rules[i.Name], func(r rule) bool { return r.table == c.Table && r.leads }) {
		i.Table = c.Table
	}
	mtu := c.MTU
	if mtu == 0 {
		mtu = 1500
	}
	i.Persistent = mtu == i.MTU && !c.Unmanaged && (n.shared == nil || n.shared.File != c.File)
	for _, a := range i.Addresses {
		p, err := netip.ParsePrefix(a)
		if err != nil || !p.Addr().Is4() {
			continue
		}
		if !slices.Contains(c.Addresses, a) && !(i.DHCP && c.DHCP4) || c.DHCP4 && !i.DHCP {
			i.Persistent = false
		}
	}
}

// byMAC returns the interface of an adapter: the physical one if a bond or VLAN has the same MAC.
func (n *network) byMAC(mac string) *backends.Interface {
	var found *backends.Interface
	for i := range n.interfaces {
		if in := &n.interfaces[i]; in.MAC == mac && (found == nil || n.physical[in.Name]) {
			found = in
		}
	}
	return found
}
