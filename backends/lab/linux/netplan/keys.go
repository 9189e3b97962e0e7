package netplan

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

type reader = func(p *parser, key string, n *yaml.Node) error

// anything is for keys that do not decide what the lab shows.
func anything(*parser, string, *yaml.Node) error { return nil }

// scalar reads a scalar. convert returns the value to keep, or the error's text, with %s for the value.
func scalar(convert func(string) (value, err string)) reader {
	return func(p *parser, key string, n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			return p.fail(n, "expected scalar")
		}
		value, err := convert(n.Value)
		if err != "" {
			return p.fail(n, strings.ReplaceAll(err, "KEY", key), n.Value)
		}
		p.d.set[key] = value
		return nil
	}
}

var (
	text    = scalar(func(s string) (string, string) { return s, "" })
	boolean = scalar(func(s string) (string, string) {
		switch strings.ToLower(s) {
		case "true", "yes", "on", "y":
			return "true", ""
		case "false", "no", "off", "n":
			return "false", ""
		}
		return "", "invalid boolean value '%s'"
	})
	number = scalar(func(s string) (string, string) {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return "", "invalid unsigned int value '%s'"
		}
		return strconv.FormatUint(n, 10), ""
	})
	hardware = regexp.MustCompile(`^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$|^([0-9A-Fa-f]{2}:){19}[0-9A-Fa-f]{2}$`)
	mac      = scalar(func(s string) (string, string) {
		if !hardware.MatchString(s) {
			return "", "Invalid MAC address '%s', must be XX:XX:XX:XX:XX:XX or XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX:XX"
		}
		return s, ""
	})
)

// oneOf reads one of a few words.
func oneOf(err string, words ...string) reader {
	return scalar(func(s string) (string, string) {
		if !slices.Contains(words, s) {
			return "", err
		}
		return s, ""
	})
}

func address(four bool) reader {
	return func(p *parser, key string, n *yaml.Node) error {
		ip, err := netip.ParseAddr(n.Value)
		if version := map[bool]string{true: "IPv4", false: "IPv6"}[four]; err != nil || ip.Is4() != four {
			return p.fail(n, "invalid %s address '%s'", version, n.Value)
		}
		p.Gateways = append(p.Gateways, key)
		return text(p, key, n)
	}
}

// list reads a sequence. Files add to it, without repeating a value.
func list(check func(p *parser, n *yaml.Node, value string) error) reader {
	return func(p *parser, key string, n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return p.fail(n, "expected sequence")
		}
		for _, item := range n.Content {
			item = target(item)
			if item.Kind == yaml.MappingNode && key == "addresses" && len(item.Content) == 2 {
				if err := p.labelled(item, check); err != nil {
					return err
				}
				continue
			}
			if item.Kind != yaml.ScalarNode {
				return p.fail(item, "expected scalar")
			}
			if err := check(p, n, item.Value); err != nil {
				return err
			}
			if !slices.Contains(p.d.lists[key], item.Value) {
				p.d.lists[key] = append(p.d.lists[key], item.Value)
			}
		}
		return nil
	}
}

// labelled reads an address with options.
func (p *parser) labelled(n *yaml.Node, check func(p *parser, n *yaml.Node, value string) error) error {
	a := target(n.Content[0])
	if err := check(p, n, a.Value); err != nil {
		return err
	}
	key := "options." + a.Value + "."
	if err := p.mapping(n.Content[1], key,
		schema{"label": text, "lifetime": oneOf("invalid lifetime value '%s'", "0", "forever")}); err != nil {
		return err
	}
	p.d.lists["labelled"] = append(p.d.lists["labelled"], a.Value)
	return nil
}

func prefixed(p *parser, n *yaml.Node, s string) error {
	if !strings.Contains(s, "/") {
		return p.fail(n, "address '%s' is missing /prefixlength", s)
	}
	ip, bits, _ := strings.Cut(s, "/")
	at, err := netip.ParseAddr(ip)
	length, errBits := strconv.ParseUint(bits, 10, 32)
	switch {
	case errBits != nil, err != nil:
		return p.fail(n, "malformed address '%s', must be X.X.X.X/NN or X:X:X:X:X:X:X:X/NN", s)
	case length == 0 || int(length) > at.BitLen():
		return p.fail(n, "invalid prefix length in address '%s'", s)
	}
	return nil
}

func server(p *parser, n *yaml.Node, s string) error {
	if _, err := netip.ParseAddr(s); err != nil {
		return p.fail(n, "malformed address '%s', must be X.X.X.X or X:X:X:X:X:X:X:X", s)
	}
	return nil
}

func free(*parser, *yaml.Node, string) error { return nil }

// linkLocal reads the families; the last file decides.
func linkLocal(p *parser, key string, n *yaml.Node) error {
	p.d.lists[key] = []string{}
	return list(func(p *parser, n *yaml.Node, s string) error {
		if s != "ipv4" && s != "ipv6" {
			return p.fail(n, "invalid value for link-local: '%s'", s)
		}
		return nil
	})(p, key, n)
}

// within reads a mapping of its own keys.
func within(known schema) reader {
	return func(p *parser, key string, n *yaml.Node) error { return p.mapping(n, key+".", known) }
}

// openMap reads a mapping with any keys.
func openMap(p *parser, key string, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return p.fail(n, "expected mapping (check indentation)")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		p.d.set[key+"."+n.Content[i].Value] = target(n.Content[i+1]).Value
	}
	return nil
}

// match reads the properties of the device; the driver may be a list.
func match(p *parser, key string, n *yaml.Node) error {
	p.d.matched = true
	return p.mapping(n, key+".", schema{"name": text, "macaddress": mac, "driver": func(p *parser, key string, n *yaml.Node) error {
		words := []string{n.Value}
		switch {
		case n.Kind == yaml.MappingNode:
			return p.fail(n, "invalid type for 'driver': must be a scalar or a sequence of scalars")
		case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
			return p.fail(n, "invalid sequence for 'driver'")
		case n.Kind == yaml.SequenceNode:
			words = nil
			for _, item := range n.Content {
				words = append(words, item.Value)
			}
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, " ") }) {
			return p.fail(n, "A 'driver' glob cannot contain whitespace")
		}
		p.d.set[key] = strings.Join(words, " ")
		return nil
	}})
}

// mention reads the names of other definitions.
func mention(p *parser, key string, n *yaml.Node) error {
	if key != "interfaces" {
		p.refs = append(p.refs, ref{p.d, key, n, n})
		return text(p, key, n)
	}
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			p.refs = append(p.refs, ref{p.d, key, target(item), n})
		}
	}
	return list(free)(p, key, n)
}

// policies reads routes or rules. Equal ones are kept once.
func policies(known schema, into func(*def) *[]map[string]string, check func(map[string]string) string) reader {
	return func(p *parser, key string, n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return p.fail(n, "expected sequence")
		}
		for _, item := range n.Content {
			d := p.d
			p.d = &def{set: map[string]string{}}
			err := p.mapping(item, "", known)
			one := p.d.set
			p.d = d
			if err != nil {
				return err
			}
			if err := check(one); err != "" {
				return p.fail(n, "%s", err)
			}
			if all := into(d); !slices.ContainsFunc(*all, func(o map[string]string) bool { return maps.Equal(o, one) }) {
				*all = append(*all, one)
			}
		}
		return nil
	}
}

// network reads an address, a network, or "default".
func network(word string) reader {
	return scalar(func(s string) (string, string) {
		ip, bits, _ := strings.Cut(s, "/")
		_, err := netip.ParseAddr(ip)
		if _, number := strconv.ParseUint("0"+bits, 10, 8); s != word && (err != nil || number != nil) {
			return "", "invalid IP family '-1'%.0s"
		}
		return s, ""
	})
}

func checkRoute(r map[string]string) string {
	if r["scope"] == "" {
		r["scope"] = "global"
		if kind := r["type"]; kind == "local" || kind == "nat" {
			r["scope"] = "host"
		} else if kind == "" && r["via"] == "" || kind == "unicast" && r["via"] == "" || kind == "broadcast" || kind == "multicast" ||
			kind == "anycast" {
			r["scope"] = "link"
		}
	}
	unicast := r["type"] == "" || r["type"] == "unicast"
	switch {
	case r["scope"] != "global" && r["to"] == "":
		return "link and host routes must specify a 'to' IP"
	case unicast && r["scope"] == "global" && (r["to"] == "" || r["via"] == ""):
		return "global unicast route must include both a 'to' and 'via' IP"
	case r["to"] == "":
		return "non-unicast routes must specify a 'to' IP"
	}
	return ""
}

func checkRule(r map[string]string) string {
	if r["from"] == "" && r["to"] == "" {
		return "IP routing policy must include either a 'from' or 'to' IP"
	}
	return ""
}

func with(base schema, more schema) schema {
	s := maps.Clone(base)
	maps.Copy(s, more)
	return s
}

// each returns a schema that reads all keys in one way.
func each(read reader, keys string) schema {
	s := schema{}
	for key := range strings.FieldsSeq(keys) {
		s[key] = read
	}
	return s
}

var (
	dhcp = with(each(boolean, "send-hostname use-dns use-hostname use-mtu use-ntp use-routes"),
		schema{"hostname": text, "use-domains": text, "route-metric": number})

	common = with(each(boolean,
		"accept-ra critical ignore-carrier dhcp4 dhcp6 ipv6-privacy optional hairpin port-mac-learning neigh-suppress"), schema{
		"activation-mode": oneOf("Value of 'activation-mode' needs to be 'manual' or 'off'%.0s", "manual", "off"),
		"addresses":       list(prefixed), "gateway4": address(true), "gateway6": address(false), "mtu": number, "ipv6-mtu": number,
		"dhcp-identifier": text, "dhcp4-overrides": within(dhcp), "dhcp6-overrides": within(dhcp), "link-local": linkLocal, "macaddress": mac,
		"nameservers":             within(schema{"addresses": list(server), "search": list(free)}),
		"ipv6-address-generation": oneOf("unknown ipv6-address-generation '%s'", "eui64", "stable-privacy"), "ipv6-address-token": text,
		"optional-addresses": list(free), "ra-overrides": anything, "openvswitch": anything,
		"networkmanager": within(with(each(text, "name uuid stable-id device"), schema{"passthrough": openMap})),
		"renderer": func(p *parser, key string, n *yaml.Node) (err error) {
			p.d.set[key], err = p.readRenderer(n)
			return err
		},
		"routes": policies(with(each(number, "table metric mtu congestion-window advertised-receive-window advertised-mss"), schema{
			"from": network(""), "via": network(""), "to": network("default"), "on-link": boolean,
			"scope": oneOf("invalid route scope '%s'", "global", "link", "host"),
			"type": oneOf("invalid route type '%s'", "unicast", "anycast", "blackhole", "broadcast", "local", "multicast", "nat", "prohibit",
				"throw", "unreachable",
				"xresolve"),
		}), func(d *def) *[]map[string]string { return &d.routes }, checkRoute),
		"routing-policy": policies(with(each(number, "mark priority table type-of-service"), schema{"from": network(""), "to": network("")}),
			func(d *def) *[]map[string]string { return &d.rules }, checkRule),
	})

	card = with(common, with(each(boolean, "wakeonlan emit-lldp receive-checksum-offload transmit-checksum-offload tcp-segmentation-offload "+
		"tcp6-segmentation-offload generic-segmentation-offload generic-receive-offload large-receive-offload delay-virtual-functions-rebind"),
		schema{
			"match": match, "set-name": text, "wakeonwlan": anything, "auth": anything, "link": mention, "virtual-function-count": number,
			"embedded-switch-mode": oneOf("Value of 'embedded-switch-mode' needs to be 'switchdev' or 'legacy'%.0s", "switchdev", "legacy"),
			"infiniband-mode":      oneOf("Value of 'infiniband-mode' needs to be 'datagram' or 'connected'%.0s", "datagram", "connected"),
		}))
	master = with(common, schema{"interfaces": mention, "parameters": openMap})

	// kinds are the kinds of devices. Parameters of those that the lab's guests never have are not checked.
	kinds = map[string]schema{
		"ethernets": card, "bonds": master, "bridges": master, "vlans": with(common, schema{"id": number, "link": mention}),
		"vrfs":  with(common, schema{"interfaces": mention, "table": number}),
		"wifis": with(card, schema{"access-points": anything, "regulatory-domain": text}),
		"tunnels": with(common,
			each(anything, "mode local remote ttl keys key peers mark port id link mac-learning ageing aging limit type-of-service "+
				"flow-label do-not-fragment short-circuit notifications checksums extensions port-range")),
	}
)
