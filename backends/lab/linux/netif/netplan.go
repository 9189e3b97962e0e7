package netif

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

const netplanDir = "/etc/netplan"

// definition is an entry below ethernets.
type definition struct {
	id      string
	mac     string // match.macaddress
	name    string // match.name
	setName string
	dhcp    bool
	noRoute bool // dhcp4-overrides: use-routes: false
	addrs   []netip.Prefix
	mtu     int
	policies
}

// planError is an error of netplan about a file.
type planError struct {
	file string
	line int
	col  int
	text string
	what string // "Error in network definition", "Invalid YAML"
}

func (e planError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", e.file, e.line, e.col, e.what, e.text)
}

// load reads /etc/netplan/*.yaml in order; a later file overrides an earlier one for the same id.
func (c *Config) load() (map[string]*definition, error) {
	list, err := c.FS.ReadDir(vfs.Root(), netplanDir)
	if err != nil {
		return nil, nil
	}
	defs := map[string]*definition{}
	for _, i := range list {
		if !strings.HasSuffix(i.Name(), ".yaml") {
			continue
		}
		file := path.Join(netplanDir, i.Name())
		data, err := c.FS.ReadFile(vfs.Root(), file)
		if err != nil {
			return nil, err
		}
		if err := parsePlan(file, data, defs); err != nil {
			return nil, err
		}
	}
	return defs, nil
}

func parsePlan(file string, data []byte, defs map[string]*definition) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		line := 1
		_, _ = fmt.Sscanf(strings.TrimPrefix(err.Error(), "yaml: "), "line %d:", &line)
		return planError{file, line, 1, strings.TrimPrefix(err.Error(), "yaml: "), "Invalid YAML"}
	}
	if len(doc.Content) == 0 {
		return nil
	}
	fail := func(n *yaml.Node, format string, args ...any) error {
		return planError{file, n.Line, n.Column, fmt.Sprintf(format, args...), "Error in network definition"}
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fail(root, "expected mapping (check indentation)")
	}
	for key, network := range pairs(root) {
		if key.Value != "network" {
			return fail(key, "unknown key '%s'", key.Value)
		}
		if network.Kind != yaml.MappingNode {
			return fail(network, "expected mapping (check indentation)")
		}
		for key, value := range pairs(network) {
			switch key.Value {
			case "version":
				if value.Value != "2" {
					return fail(value, "Only version 2 is supported")
				}
			case "renderer":
				if value.Value != "networkd" && value.Value != "NetworkManager" {
					return fail(value, "unknown renderer '%s'", value.Value)
				}
			case "ethernets":
				if value.Kind != yaml.MappingNode {
					return fail(value, "expected mapping (check indentation)")
				}
				for id, def := range pairs(value) {
					d := defs[id.Value]
					if d == nil {
						d = &definition{id: id.Value}
						defs[id.Value] = d
					}
					if err := d.parse(def, fail); err != nil {
						return err
					}
				}
			case "wifis", "bonds", "bridges", "vlans", "tunnels":
			default:
				return fail(key, "unknown key '%s'", key.Value)
			}
		}
	}
	return nil
}

// pairs iterates over the keys and values of a mapping.
func pairs(n *yaml.Node) func(func(k, v *yaml.Node) bool) {
	return func(yield func(k, v *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

func (d *definition) parse(n *yaml.Node, fail func(*yaml.Node, string, ...any) error) error {
	if n.Kind != yaml.MappingNode {
		return fail(n, "expected mapping (check indentation)")
	}
	for key, v := range pairs(n) {
		switch key.Value {
		case "match":
			for k, m := range pairs(v) {
				switch k.Value {
				case "macaddress":
					if len(m.Value) != 17 || strings.Count(m.Value, ":") != 5 {
						return fail(m, "Invalid MAC address '%s', must be XX:XX:XX:XX:XX:XX", m.Value)
					}
					d.mac = strings.ToLower(m.Value)
				case "name":
					d.name = m.Value
				case "driver":
				default:
					return fail(k, "unknown key '%s'", k.Value)
				}
			}
		case "set-name":
			d.setName = v.Value
		case "dhcp4":
			b, ok := boolean(v.Value)
			if !ok {
				return fail(v, "invalid boolean value '%s'", v.Value)
			}
			d.dhcp = b
		case "dhcp4-overrides":
			if err := d.overrides(v, fail); err != nil {
				return err
			}
		case "addresses":
			if v.Kind != yaml.SequenceNode {
				return fail(v, "expected sequence")
			}
			for _, a := range v.Content {
				text := a.Value
				if a.Kind == yaml.MappingNode && len(a.Content) > 0 {
					text = a.Content[0].Value
				}
				if !strings.Contains(text, "/") {
					return fail(a, "address '%s' is missing /prefixlength", text)
				}
				prefix, err := netip.ParsePrefix(text)
				if err != nil {
					return fail(a, "malformed address '%s', must be X.X.X.X/NN or X:X:X:X:X:X:X:X/NN", text)
				}
				if !slices.Contains(d.addrs, prefix) {
					d.addrs = append(d.addrs, prefix)
				}
			}
		case "routing-policy", "routes":
			if v.Kind != yaml.SequenceNode {
				return fail(v, "expected sequence")
			}
			for _, item := range v.Content {
				if err := d.policy(key.Value, item, fail); err != nil {
					return err
				}
			}
		case "mtu":
			mtu, err := strconv.Atoi(v.Value)
			if err != nil {
				return fail(v, "invalid unsigned int value '%s'", v.Value)
			}
			d.mtu = mtu
		case "dhcp6", "optional", "critical", "renderer", "accept-ra", "link-local", "wakeonlan", "optional-addresses",
			"gateway4", "gateway6", "nameservers", "dhcp-identifier",
			"dhcp6-overrides", "ipv6-privacy", "macaddress", "receive-checksum-offload", "ignore-carrier",
			"activation-mode", "dhcp", "virtual-function-count":
			if key.Value == "dhcp" {
				return fail(key, "unknown key '%s'", key.Value)
			}
		default:
			return fail(key, "unknown key '%s'", key.Value)
		}
	}
	return nil
}

// policy reads one route or rule (handle_routes and handle_ip_rules in parse.c of netplan).
func (d *definition) policy(of string, n *yaml.Node, fail func(*yaml.Node, string, ...any) error) error {
	if n.Kind != yaml.MappingNode {
		return fail(n, "expected mapping (check indentation)")
	}
	var r Rule
	route, via, scope, to := TableRoute{Proto: "static"}, "", "global", ""
	known := map[string][]string{
		"routes":         {"from", "to", "via", "scope", "table", "metric", "type", "on-link", "mtu", "congestion-window", "advertised-receive-window"},
		"routing-policy": {"from", "to", "table", "priority", "mark", "type-of-service"},
	}[of]
	for key, v := range pairs(n) {
		if !slices.Contains(known, key.Value) {
			return fail(key, "unknown key '%s'", key.Value)
		}
		prefix, isPrefix := prefixOf(v.Value)
		number, err := strconv.ParseUint(v.Value, 10, 32)
		switch key.Value {
		case "from", "to", "via":
			if !isPrefix && v.Value != "default" {
				return fail(v, "invalid IP family '%d'", -1)
			}
		case "table", "priority":
			if err != nil {
				return fail(v, "invalid unsigned int value '%s'", v.Value)
			}
		}
		switch key.Value {
		case "from":
			r.From, route.Src = prefix, prefix.Addr()
		case "to":
			to, route.To = v.Value, prefix
		case "via":
			via = v.Value
		case "scope":
			if scope = v.Value; scope != "global" && scope != "link" && scope != "host" {
				return fail(v, "invalid route scope '%s'", scope)
			}
		case "table":
			r.Table, route.Table = int(number), int(number)
		case "priority":
			r.Priority = int(number)
		}
	}
	switch {
	case of == "routes" && (to == "" || via == "" && scope == "global"):
		return fail(n, "unicast route must include both a 'to' and 'via' IP")
	case of == "routing-policy" && !r.From.IsValid() && to == "":
		return fail(n, "IP routing policy must include either a 'from' or 'to' IP")
	case of == "routes" && route.Table != 0 && route.To.IsValid():
		d.routes = append(d.routes, route)
	case of == "routing-policy" && r.Table != 0:
		r.Proto = "static"
		d.rules = append(d.rules, r)
	}
	return nil
}

// overrides parses the settings that are accepted from DHCP.
func (d *definition) overrides(v *yaml.Node, fail func(*yaml.Node, string, ...any) error) error {
	if v.Kind != yaml.MappingNode {
		return fail(v, "expected mapping (check indentation)")
	}
	for key, value := range pairs(v) {
		switch key.Value {
		case "use-routes", "use-dns", "use-mtu", "use-ntp", "use-hostname", "send-hostname":
			b, ok := boolean(value.Value)
			if !ok {
				return fail(value, "invalid boolean value '%s'", value.Value)
			}
			if key.Value == "use-routes" {
				d.noRoute = !b
			}
		case "hostname", "route-metric", "use-domains":
		default:
			return fail(key, "unknown key '%s'", key.Value)
		}
	}
	return nil
}

func boolean(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "y", "1":
		return true, true
	case "false", "no", "off", "n", "0":
		return false, true
	}
	return false, false
}

func (d *definition) matches(l Link) bool {
	switch {
	case d.mac != "":
		return strings.EqualFold(d.mac, l.MAC)
	case d.name != "":
		ok, _ := path.Match(d.name, l.Name)
		return ok
	}
	return d.id == l.Name
}

// apply configures every interface that matches a definition. Other interfaces are not changed.
func (c *Config) apply(defs map[string]*definition) {
	for _, l := range c.Stack.Links() {
		c.applyOne(defs, l)
	}
}

func (c *Config) applyOne(defs map[string]*definition, l Link) {
	for _, id := range slices.Sorted(maps.Keys(defs)) {
		d := defs[id]
		if !d.matches(l) {
			continue
		}
		var addrs []Addr
		if d.dhcp && l.Connected {
			if p, ok := c.DHCP(l.MAC); ok {
				addrs = append(addrs, Addr{Prefix: p, DHCP: true, NoRoutes: d.noRoute})
			}
		}
		for _, p := range d.addrs {
			addrs = append(addrs, Addr{Prefix: p})
		}
		// networkd logs an error and continues if the device rejects an MTU.
		if err := c.Stack.Configure(l.Name, addrs, d.mtu); errors.Is(err, ErrMTU) {
			_ = c.Stack.Configure(l.Name, addrs, 0)
		}
		c.follow(l.Name, d.policies)
		return
	}
}
