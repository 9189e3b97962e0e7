package netconf

import (
	"bufio"
	"crypto/sha1"
	"fmt"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// ConnectionUUID returns the UUID of the NetworkManager connection of a port group; always the same for the same adapter.
func ConnectionUUID(a Static) string {
	b := sha1.Sum([]byte("rdma-setup/" + a.PortGroup + "/" + strings.ToLower(a.MAC)))
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// KeyfileText returns a NetworkManager keyfile for one interface, matched by its MAC. It has priority over other profiles for the
// interface, and never sets a default route; with DHCP it accepts no routes or DNS servers (nm-settings(5): never-default,
// ignore-auto-routes, ignore-auto-dns).
func KeyfileText(a Static) string {
	method := "method=manual\naddress1=" + a.CIDR
	if a.CIDR == backends.DHCP {
		method = "method=auto\nignore-auto-routes=true\nignore-auto-dns=true"
	}
	return comment(a) + fmt.Sprintf(`[connection]
id=rdma-setup-%s
uuid=%s
type=ethernet
autoconnect=true
autoconnect-priority=100

[ethernet]
mac-address=%s
mtu=%d

[ipv4]
%s
never-default=true

[ipv6]
method=link-local
`, Slug(a.PortGroup), ConnectionUUID(a), strings.ToUpper(a.MAC), a.MTU, method+a.keyfileRule())
}

// keyfileRule is a rule for packets from the address, with its route (NetworkManager, nm-settings-keyfile(5); netplan,
// tests/generator/test_routing.py, has such lines; rules since NetworkManager 1.18).
func (a Static) keyfileRule() string {
	from, subnet, ok := a.rule()
	if !ok {
		return ""
	}
	return fmt.Sprintf("\nroute1=%[2]s\nroute1_options=table=%[3]d,src=%[1]s\nrouting-rule1=priority %[3]d from %[1]s/32 table %[3]d", from, subnet, a.Table)
}

// sectionsOf parses an ini file: keys by section, with the last value of a key; "address1" and similar keys stay separate. Keys
// of repeated sections are merged, and values of repeatable keys (systemd) are joined with newlines.
func sectionsOf(text string) map[string]map[string]string {
	m := map[string]map[string]string{}
	section := ""
	sc := bufio.NewScanner(strings.NewReader(text))
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' && line[len(line)-1] == ']' {
			section = strings.ToLower(line[1 : len(line)-1])
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		if m[section] == nil {
			m[section] = map[string]string{}
		}
		k, v = strings.ToLower(strings.TrimSpace(k)), strings.TrimSpace(v)
		if old, again := m[section][k]; again {
			v = old + "\n" + v
		}
		m[section][k] = v
	}
	return m
}

// findConnection returns the profile that NetworkManager would activate on an interface: the one with the highest priority among
// keyfiles and ifcfg files that name it.
func findConnection(files []File, nic NIC) (Config, bool) {
	var best Config
	found, top := false, 0
	for _, f := range files {
		var c Config
		var rank int
		var ok bool
		switch {
		case isIn(f.Path, "/etc/NetworkManager/system-connections", "/run/NetworkManager/system-connections"):
			c, rank, ok = keyfile(f, nic)
		case strings.HasPrefix(f.Path, "/etc/sysconfig/network-scripts/ifcfg-"):
			c, ok = ifcfg(f, nic)
		}
		if ok && (!found || rank > top) {
			best, found, top = c, true, rank
		}
	}
	return best, found
}

func keyfile(f File, nic NIC) (c Config, rank int, ok bool) {
	s := sectionsOf(f.Content)
	conn, ip := s["connection"], s["ipv4"]
	hw := s["ethernet"]
	if hw == nil {
		hw = s["802-3-ethernet"]
	}
	if t := conn["type"]; t != "ethernet" && t != "802-3-ethernet" || conn["autoconnect"] == "false" {
		return c, 0, false
	}
	mac, name := hw["mac-address"], conn["interface-name"]
	switch {
	case mac == "" && name == "":
		return c, 0, false // any interface: not specific to this one
	case mac != "" && !strings.EqualFold(mac, nic.MAC), name != "" && name != nic.Name:
		return c, 0, false
	}
	c = Config{File: f.Path, ID: conn["id"], DHCP: ip["method"] == "auto"}
	c.MTU, _ = strconv.Atoi(hw["mtu"])
	for i := 0; i < 16; i++ {
		key := "address" + strconv.Itoa(i)
		if i == 0 {
			key = "addresses"
		}
		for a := range strings.FieldsFuncSeq(ip[key], func(r rune) bool { return r == ';' || r == '\n' }) {
			cidr, _, _ := strings.Cut(a, ",") // address, gateway
			c.Addresses = append(c.Addresses, canonical(cidr))
		}
	}
	for key, rule := range ip {
		if strings.HasPrefix(key, "routing-rule") && len(c.Addresses) > 0 {
			c.table(strings.Fields(rule))
		}
	}
	rank, _ = strconv.Atoi(conn["autoconnect-priority"])
	return c, rank, true
}
