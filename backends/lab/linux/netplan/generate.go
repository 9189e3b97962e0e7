package netplan

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

const (
	networkdDir   = "/run/systemd/network"
	profileDir    = "/run/NetworkManager/system-connections"
	managedFile   = "/run/NetworkManager/conf.d/10-globally-managed-devices.conf"
	unmanagedFile = "/run/NetworkManager/conf.d/netplan.conf"
	udevFile      = "/run/udev/rules.d/90-netplan.rules"
)

// Generate writes the files for the programs below root, and removes those that were generated before.
func (s *State) Generate() error {
	files := map[string]string{}
	for _, d := range s.defs {
		name := url.PathEscape(d.id)
		base := networkdDir + "/10-netplan-" + name
		if text := d.link(); text != "" {
			files[base+".link"] = text
		}
		if d.backend(s) == "networkd" {
			if key := d.inconsistent(); key != "" {
				return fmt.Errorf("ERROR: %s: networkd requires that %s has the same value in both dhcp4_overrides and dhcp6_overrides", d.id, key)
			}
			if d.kind == "wifis" && d.matched {
				return fmt.Errorf("ERROR: %s: networkd backend does not support wifi with match:, only by interface name", d.id)
			}
			files[base+".network"] = d.network(s)
			if text := d.netdev(); text != "" {
				files[base+".netdev"] = text
			}
			files[udevFile], files[unmanagedFile] = files[udevFile]+d.udev("1"), files[unmanagedFile]+d.allCards("0")
			continue
		}
		text, err := d.profile(s)
		if err != nil {
			return err
		}
		files[profileDir+"/netplan-"+name+".nmconnection"] = text
		files[udevFile], files[unmanagedFile] = files[udevFile]+d.udev("0"), files[unmanagedFile]+d.allCards("1")
	}
	maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
	if s.renderer == "NetworkManager" {
		files[managedFile] = "" // hides the file of this name below /usr/lib that lets NetworkManager manage few kinds of devices
	}
	return s.write(files)
}

func (s *State) write(files map[string]string) error {
	root := vfs.Root()
	for _, dir := range []string{networkdDir, profileDir} {
		list, err := s.fs.ReadDir(root, s.root+dir)
		for _, i := range list {
			if name := i.Name(); err == nil && (strings.HasPrefix(name, "10-netplan-") || strings.HasPrefix(name, "netplan-")) {
				_ = s.fs.Remove(root, s.root+dir+"/"+name)
			}
		}
	}
	for _, file := range []string{managedFile, unmanagedFile, udevFile} {
		_ = s.fs.Remove(root, s.root+file) // may not exist
	}
	for _, file := range sorted(files) {
		mode := fs.FileMode(0o644)
		if path.Dir(file) == profileDir {
			mode = 0o600
		}
		if err := s.fs.MkdirAll(root, path.Dir(s.root+file), 0o755); err != nil {
			return err
		}
		if err := s.fs.WriteFile(root, s.root+file, []byte(files[file]), mode); err != nil {
			return err
		}
	}
	return nil
}

// An ini is the text of a file with sections.
type ini struct{ strings.Builder }

func (t *ini) section(name string, lines ...string) {
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	if len(lines) == 0 && name != "Match" {
		return
	}
	if t.Len() > 0 {
		t.WriteString("\n")
	}
	t.WriteString("[" + name + "]\n")
	for _, l := range lines {
		t.WriteString(l + "\n")
	}
}

// line returns KEY=VALUE, "" without a value.
func line(key, value string) string {
	if value == "" {
		return ""
	}
	return key + "=" + value
}

func lineIf(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// original is the name, or the pattern of names, that the device has before it is renamed.
func (d *def) original() string {
	if !d.matched {
		return d.id
	}
	return d.set["match.name"]
}

func (d *def) link() string {
	if !d.physical() || d.set["set-name"] == "" && !d.on("wakeonlan") && d.set["mtu"] == "" {
		return ""
	}
	t, wake := &ini{}, "off"
	if d.on("wakeonlan") {
		wake = "magic"
	}
	t.section("Match", line("Driver", d.set["match.driver"]), line("PermanentMACAddress", d.set["match.macaddress"]),
		line("OriginalName", d.original()))
	t.section("Link", line("Name", d.set["set-name"]), "WakeOnLan="+wake, line("MTUBytes", d.set["mtu"]))
	return t.String()
}

func (d *def) netdev() string {
	if d.physical() || d.kind == "tunnels" {
		return ""
	}
	kind := strings.TrimSuffix(d.kind, "s")
	t := &ini{}
	t.section("NetDev", "Name="+d.id, line("MACAddress", d.set["macaddress"]), line("MTUBytes", d.set["mtu"]), "Kind="+kind)
	switch kind {
	case "vlan":
		t.section("VLAN", "Id="+d.set["id"])
	case "vrf":
		t.section("VRF", "Table="+d.set["table"])
	case "bond":
		t.section("Bond", line("Mode", d.set["parameters.mode"]))
	}
	return t.String()
}

func (d *def) network(s *State) string {
	t := &ini{}
	name := d.id
	if d.physical() {
		name = cmp.Or(d.set["set-name"], d.original())
	}
	t.section("Match", line("Driver", d.set["match.driver"]), line("PermanentMACAddress", d.set["match.macaddress"]), line("Name", name))
	policy := map[string]string{"manual": "manual", "off": "always-down"}[d.set["activation-mode"]]
	var optional []string
	for _, kind := range d.lists["optional-addresses"] {
		optional = append(optional, "OptionalAddresses="+kind)
	}
	t.section("Link", line("ActivationPolicy", policy), lineIf(d.on("optional") || policy != "", "RequiredForOnline=no"),
		strings.Join(optional, "\n"), line("MTUBytes", d.set["mtu"]),
		line("MACAddress", d.set["macaddress"]))
	t.section("Network", d.addressing(s)...)
	for _, r := range d.routes {
		to := r["to"]
		if to == "default" {
			to = "0.0.0.0/0"
			if strings.Contains(r["via"], ":") {
				to = "::/0"
			}
		}
		t.section("Route", "Destination="+to, line("Gateway", r["via"]), line("PreferredSource", r["from"]),
			lineIf(r["scope"] != "global", "Scope="+r["scope"]),
			lineIf(r["type"] != "unicast", line("Type", r["type"])), lineIf(r["on-link"] == "true", "GatewayOnLink=true"),
			line("Metric", r["metric"]),
			line("Table", r["table"]), line("MTUBytes", r["mtu"]))
	}
	for _, r := range d.rules {
		t.section("RoutingPolicyRule", line("From", r["from"]), line("To", r["to"]), line("Table", r["table"]), line("Priority", r["priority"]),
			line("FirewallMark", r["mark"]), line("TypeOfService", r["type-of-service"]))
	}
	for _, a := range d.lists["labelled"] {
		life := map[string]string{"0": "0", "forever": "forever"}[d.set["options."+a+".lifetime"]]
		t.section("Address", "Address="+a, line("Label", d.set["options."+a+".label"]), line("PreferredLifetime", life))
	}
	if family := d.family(); family != "" || d.on("critical") {
		t.section("DHCP", append([]string{lineIf(d.on("critical"), "CriticalConnection=true")}, d.lease(family)...)...)
	}
	return t.String()
}

// family returns the value of DHCP=.
func (d *def) family() string {
	return map[[2]bool]string{{true, true}: "yes", {true, false}: "ipv4", {false, true}: "ipv6"}[[2]bool{d.on("dhcp4"), d.on("dhcp6")}]
}

// inconsistent returns an override that networkd, which has one section for both families, cannot have.
func (d *def) inconsistent() string {
	for _, key := range []string{"hostname", "route-metric", "send-hostname", "use-dns", "use-domains", "use-hostname", "use-mtu", "use-ntp",
		"use-routes"} {
		if d.family() == "yes" && cmp.Or(d.set["dhcp4-overrides."+key], "true") != cmp.Or(d.set["dhcp6-overrides."+key], "true") {
			return key
		}
	}
	return ""
}

func (d *def) lease(family string) []string {
	if family == "" {
		return nil
	}
	o := "dhcp4-overrides."
	if family == "ipv6" {
		o = "dhcp6-overrides."
	}
	not := func(key, name string) string { return lineIf(d.off(o+key), name+"=false") }
	mtu := "UseMTU=true"
	if d.off(o + "use-mtu") {
		mtu = "UseMTU=false"
	}
	return []string{line("ClientIdentifier", lineIf(d.set["dhcp-identifier"] == "mac", "mac")),
		"RouteMetric=" + cmp.Or(d.set[o+"route-metric"], lineIf(d.kind == "wifis", "600"), "100"), mtu,
		not("use-routes", "UseRoutes"), not("use-dns", "UseDNS"), line("UseDomains", d.set[o+"use-domains"]), not("use-ntp", "UseNTP"),
		not("send-hostname", "SendHostname"), not("use-hostname", "UseHostname"), line("Hostname", d.set[o+"hostname"])}
}

// addressing returns the lines of [Network].
func (d *def) addressing(s *State) []string {
	local, families := "LinkLocalAddressing=ipv6", d.lists["link-local"]
	switch {
	case d.bond != "" || d.bridge != "" || families != nil && len(families) == 0:
		local = "LinkLocalAddressing=no"
	case len(families) == 2:
		local = "LinkLocalAddressing=yes"
	case len(families) == 1:
		local = "LinkLocalAddressing=" + families[0]
	}
	lines := []string{lineIf(d.on("emit-lldp"), "EmitLLDP=true"), line("DHCP", d.family()), local}
	lines = append(lines, byFamily("Address=", d.lists["addresses"])...)
	lines = append(lines, lineIf(d.on("accept-ra"), "IPv6AcceptRA=yes"), lineIf(d.off("accept-ra"), "IPv6AcceptRA=no"),
		lineIf(d.on("ipv6-privacy"), "IPv6PrivacyExtensions=yes"), line("Gateway", d.set["gateway4"]), line("Gateway", d.set["gateway6"]))
	lines = append(lines, byFamily("DNS=", d.lists["nameservers.addresses"])...)
	lines = append(lines, line("Domains", strings.Join(d.lists["nameservers.search"], " ")), line("IPv6MTUBytes", d.set["ipv6-mtu"]),
		lineIf(!d.physical() || d.on("ignore-carrier"), "ConfigureWithoutCarrier=yes"), line("Bridge", d.bridge), line("Bond", d.bond))
	for _, o := range s.defs {
		if o.kind == "vlans" && o.set["link"] == d.id {
			lines = append(lines, "VLAN="+o.id)
		}
	}
	return append(lines, line("VRF", d.vrf))
}

// byFamily returns IPv4 first: netplan keeps a list per family.
func byFamily(key string, list []string) (lines []string) {
	for _, six := range []bool{false, true} {
		for _, a := range list {
			if strings.Contains(a, ":") == six {
				lines = append(lines, key+a)
			}
		}
	}
	return lines
}

// profile returns the profile for NetworkManager.
func (d *def) profile(s *State) (string, error) {
	if d.set["match.driver"] != "" && d.set["set-name"] == "" {
		return "", fmt.Errorf("ERROR: %s: NetworkManager definitions do not support matching by driver", d.id)
	}
	set := map[string]map[string]string{}
	put := func(section, key, value string) {
		if set[section] == nil {
			set[section] = map[string]string{}
		}
		if value != "" {
			set[section][key] = value
		}
	}
	if d.lists["labelled"] != nil {
		return "", fmt.Errorf("ERROR: %s: NetworkManager does not support address options", d.id)
	}
	kind := strings.TrimSuffix(d.kind, "s")
	put("connection", "id", cmp.Or(d.set["networkmanager.name"], "netplan-"+d.id))
	put("connection", "type", kind)
	put("connection", "uuid", d.set["networkmanager.uuid"])
	put("connection", "autoconnect", lineIf(d.set["activation-mode"] == "manual", "false"))
	name := d.id
	if d.physical() {
		name = cmp.Or(d.set["set-name"], d.original())
	}
	if strings.ContainsAny(name, "*[]?") {
		put("match", "interface-name", name+";")
	} else {
		put("connection", "interface-name", name)
	}
	for _, m := range [][2]string{{"bridge", d.bridge}, {"bond", d.bond}, {"vrf", d.vrf}} {
		if m[1] != "" {
			put("connection", "slave-type", m[0])
			put("connection", "master", m[1])
		}
	}
	if d.physical() {
		put("ethernet", "wake-on-lan", map[bool]string{true: "1", false: "0"}[d.on("wakeonlan")])
		put("ethernet", "mac-address", lineIf(d.set["set-name"] == "", d.set["match.macaddress"]))
	}
	put("ethernet", "cloned-mac-address", d.set["macaddress"])
	put("ethernet", "mtu", d.set["mtu"])
	switch kind {
	case "vlan":
		put("vlan", "id", d.set["id"])
		put("vlan", "parent", d.set["link"])
	case "vrf":
		put("vrf", "table", d.set["table"])
	case "bond":
		put("bond", "mode", d.set["parameters.mode"])
	}
	d.ip(put)
	for key, value := range d.set {
		if key, ok := strings.CutPrefix(key, "networkmanager.passthrough."); ok {
			section, key, _ := strings.Cut(key, ".")
			put(section, key, value)
		}
	}
	return keyfile(set), nil
}

func (d *def) ip(put func(section, key, value string)) {
	counts := map[string]int{}
	number := func(section, key string) string {
		counts[section+key]++
		return fmt.Sprintf("%s%d", key, counts[section+key])
	}
	method := map[string]string{"ipv4": "link-local", "ipv6": "ignore"}
	section := func(of string) string {
		if strings.Contains(of, ":") {
			return "ipv6"
		}
		return "ipv4"
	}
	for _, a := range d.lists["addresses"] {
		method[section(a)] = "manual"
		put(section(a), number(section(a), "address"), a)
	}
	for family, key := range map[string]string{"ipv4": "dhcp4", "ipv6": "dhcp6"} {
		if d.on(key) {
			method[family] = "auto"
		}
		put(family, "method", method[family])
		put(family, "route-metric", d.set[key+"-overrides.route-metric"])
		if d.off(key + "-overrides.use-routes") {
			put(family, "ignore-auto-routes", "true")
			put(family, "never-default", "true")
		}
	}
	put("ipv4", "gateway", d.set["gateway4"])
	put("ipv6", "gateway", d.set["gateway6"])
	servers := map[string]string{}
	for _, a := range d.lists["nameservers.addresses"] {
		servers[section(a)] += a + ";"
	}
	for family, list := range servers {
		put(family, "dns", list)
	}
	for _, r := range d.routes {
		family := section(r["to"] + r["via"])
		to := map[bool]string{true: map[string]string{"ipv4": "0.0.0.0/0", "ipv6": "::/0"}[family], false: r["to"]}[r["to"] == "default"]
		if method[family] == "link-local" || method[family] == "ignore" {
			continue
		}
		key := number(family, "route")
		value := to
		if r["via"] != "" || r["metric"] != "" {
			value += "," + r["via"] + lineIf(r["metric"] != "", ","+r["metric"])
		}
		put(family, key, value)
		var options []string
		for _, o := range [][2]string{{"onlink", lineIf(r["on-link"] == "true", "true")}, {"initrwnd", ""}, {"table", r["table"]},
			{"src", r["from"]}} {
			if o[1] != "" {
				options = append(options, o[0]+"="+o[1])
			}
		}
		put(family, key+"_options", strings.Join(options, ","))
	}
	for _, r := range d.rules {
		rule := ""
		for _, o := range [][2]string{{"priority", cmp.Or(r["priority"], "")}, {"from", r["from"]}, {"to", r["to"]}, {"table", r["table"]}} {
			if o[1] != "" {
				rule += o[0] + " " + o[1] + " "
			}
		}
		put(section(r["from"]+r["to"]), number(section(r["from"]+r["to"]), "routing-rule"), strings.TrimSpace(rule))
	}
}

func keyfile(set map[string]map[string]string) string {
	order := []string{"connection", "ethernet", "match", "bond", "vlan", "vrf", "ipv4", "ipv6"}
	for _, name := range sorted(set) {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	t := &ini{}
	for _, name := range order {
		var lines []string
		for _, key := range sorted(set[name]) {
			lines = append(lines, key+"="+set[name][key])
		}
		t.section(name, lines...)
	}
	return t.String()
}

// any reports whether the definition is for all devices of its kind.
func (d *def) any() bool {
	return d.matched && d.set["match.name"]+d.set["match.macaddress"]+d.set["match.driver"] == ""
}

func (d *def) allCards(managed string) string {
	if !d.any() {
		return ""
	}
	return fmt.Sprintf("[device-netplan.%s.%s]\nmatch-device=type:ethernet\nmanaged=%s\n\n", d.kind, d.id, managed)
}

// udev returns the rules that make NetworkManager manage a device or leave it alone.
func (d *def) udev(unmanaged string) string {
	if d.any() {
		return ""
	}
	rule := func(match string) string {
		return "SUBSYSTEM==\"net\", ACTION==\"add|change|move\"," + match + " ENV{NM_UNMANAGED}=\"" + unmanaged + "\"\n"
	}
	list := map[string]string{"1": "deny-list", "0": "allow-list"}[unmanaged]
	text := fmt.Sprintf("# netplan: network.%s.%s (on NetworkManager %s)\n", d.kind, d.id, list)
	if name := cmp.Or(d.set["set-name"], lineIf(!d.matched, d.id)); name != "" {
		text += rule(" ENV{ID_NET_NAME}==\"" + name + "\",")
	}
	if set := d.set["macaddress"]; set != "" {
		text += rule(" ATTR{address}==\"" + strings.ToLower(set) + "\",")
	}
	full := ""
	for _, m := range [][2]string{{"ENV{ID_NET_NAME}", d.set["match.name"]}, {"ATTR{address}", strings.ToLower(d.set["match.macaddress"])},
		{"ENV{ID_NET_DRIVER}", strings.ReplaceAll(d.set["match.driver"], " ", "|")}} {
		if m[1] != "" {
			full += " " + m[0] + "==\"" + m[1] + "\","
		}
	}
	if full != "" {
		text += rule(full)
	}
	return text
}

// Conflicts returns the warning about default routes of one family and metric in several definitions.
func (s *State) Conflicts() string {
	first := map[string]string{}
	for _, d := range s.defs {
		for _, family := range []string{"IPv4", "IPv6"} {
			if d.set["gateway"+family[3:]] == "" {
				continue
			}
			if o := first[family]; o != "" {
				return fmt.Sprintf("Conflicting default route declarations for %s (table: main, metric: default), first declared in %s but also in %s",
					family, o, d.id)
			}
			first[family] = d.id
		}
	}
	return ""
}

// Tree returns the merged configuration, as netplan get prints it.
func (s *State) Tree() map[string]any {
	network := map[string]any{"version": 2}
	if s.renderer != "" {
		network["renderer"] = s.renderer
	}
	for _, d := range s.defs {
		kind, _ := network[d.kind].(map[string]any)
		if kind == nil {
			kind = map[string]any{}
			network[d.kind] = kind
		}
		one := map[string]any{}
		kind[d.id] = one
		for key, value := range d.set {
			put(one, key, value)
		}
		for key, value := range d.lists {
			put(one, key, value)
		}
		for key, list := range map[string][]map[string]string{"routes": d.routes, "routing-policy": d.rules} {
			if list != nil {
				one[key] = list
			}
		}
	}
	return map[string]any{"network": network}
}

// put sets a key whose parts are joined by dots. Keys of passthrough have dots of their own.
func put(tree map[string]any, key string, value any) {
	if rest, ok := strings.CutPrefix(key, "networkmanager.passthrough."); ok {
		put(tree, "networkmanager.passthrough", map[string]any{rest: value})
		return
	}
	head, rest, nested := strings.Cut(key, ".")
	if !nested {
		if have, ok := tree[head].(map[string]any); ok {
			maps.Copy(have, value.(map[string]any))
			return
		}
		tree[head] = value
		return
	}
	if tree[head] == nil {
		tree[head] = map[string]any{}
	}
	put(tree[head].(map[string]any), rest, value)
}
