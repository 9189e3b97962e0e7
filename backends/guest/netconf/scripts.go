package netconf

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// IfcfgText returns an ifcfg file of the network scripts (EL 7 and 8 without NetworkManager). It contains no UUID, because a
// duplicate UUID breaks copied files. With DHCP it accepts no routes or DNS servers (initscripts, sysconfig.txt: PEERDNS,
// DEFROUTE; nm-settings-ifcfg-rh(5): PEERROUTES).
func IfcfgText(a Static) string {
	if a.CIDR == backends.DHCP {
		return comment(a) + fmt.Sprintf("TYPE=Ethernet\nDEVICE=%s\nHWADDR=%s\nBOOTPROTO=dhcp\nONBOOT=yes\nDEFROUTE=no\nPEERROUTES=no\nPEERDNS=no\nMTU=%d\n",
			a.Name, strings.ToUpper(a.MAC), a.MTU)
	}
	p, _ := netip.ParsePrefix(a.CIDR)
	return comment(a) + fmt.Sprintf("TYPE=Ethernet\nDEVICE=%s\nHWADDR=%s\nBOOTPROTO=none\nONBOOT=yes\nDEFROUTE=no\nIPADDR=%s\nPREFIX=%d\nMTU=%d\n",
		a.Name, strings.ToUpper(a.MAC), p.Addr(), p.Bits(), a.MTU)
}

// NetworkdText returns a .network file of systemd-networkd, matched by MAC. With DHCP it accepts no routes, DNS servers or MTU
// (systemd.network(5), section [DHCPv4]: UseRoutes=, whose value is the default of UseGateway=, UseDNS=, UseMTU=).
func NetworkdText(a Static) string {
	address, dhcp := "Address="+a.CIDR, ""
	if a.CIDR == backends.DHCP {
		address, dhcp = "DHCP=ipv4", "\n[DHCPv4]\nUseRoutes=no\nUseDNS=no\nUseMTU=no\n"
	}
	return comment(a) + fmt.Sprintf("[Match]\nMACAddress=%s\n\n[Link]\nMTUBytes=%d\n\n[Network]\n%s\nLinkLocalAddressing=ipv6\nIPv6AcceptRA=no\n%s",
		a.MAC, a.MTU, address, dhcp+a.networkdRule())
}

// networkdRule is a rule for packets from the address, with its route (systemd.network(5), [RoutingPolicyRule] and [Route]).
func (a Static) networkdRule() string {
	from, subnet, ok := a.rule()
	if !ok {
		return ""
	}
	return fmt.Sprintf("\n[RoutingPolicyRule]\nFrom=%[1]s\nTable=%[3]d\nPriority=%[3]d\n"+
		"\n[Route]\nDestination=%[2]s\nPreferredSource=%[1]s\nScope=link\nTable=%[3]d\n", from, subnet, a.Table)
}

// table returns the table of the policy rule, in ip's format, for packets from the first address.
func (c *Config) table(words []string) {
	if i := slices.Index(words, "from"); i < 0 || i+1 >= len(words) || !from(words[i+1], c.Addresses[0]) {
		return
	}
	if i := slices.Index(words, "table"); i >= 0 && i+1 < len(words) {
		c.Table, _ = strconv.Atoi(words[i+1])
	}
}

// InterfacesText returns a file for /etc/network/interfaces.d of ifupdown, which identifies interfaces only by name. Its dhcp
// method has no option for the MTU, nor one to ignore the server's routes (interfaces(5)).
func InterfacesText(a Static) string {
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

func findIfcfg(files []File, nic NIC) (Config, bool) {
	for _, f := range files {
		if c, ok := ifcfg(f, nic); ok {
			return c, true
		}
	}
	return Config{}, false
}

func ifcfg(f File, nic NIC) (Config, bool) {
	if !strings.HasPrefix(path.Base(f.Path), "ifcfg-") {
		return Config{}, false
	}
	v := map[string]string{}
	for line := range strings.SplitSeq(f.Content, "\n") {
		if k, val, ok := strings.Cut(strings.TrimSpace(line), "="); ok && k[:min(1, len(k))] != "#" {
			v[k] = strings.Trim(val, `"'`)
		}
	}
	hw, dev := v["HWADDR"], v["DEVICE"]
	if hw == "" && dev == "" || hw != "" && !strings.EqualFold(hw, nic.MAC) || dev != "" && dev != nic.Name || strings.EqualFold(v["ONBOOT"], "no") {
		return Config{}, false
	}
	c := Config{File: f.Path, ID: v["NAME"], DHCP: strings.EqualFold(v["BOOTPROTO"], "dhcp")}
	c.MTU, _ = strconv.Atoi(v["MTU"])
	for _, n := range []string{"", "0", "1", "2", "3"} {
		if ip, bits := v["IPADDR"+n], v["PREFIX"+n]; ip != "" {
			if bits == "" {
				bits = maskBits(v["NETMASK"+n])
			}
			c.Addresses = append(c.Addresses, canonical(ip+"/"+bits))
		}
	}
	return c, true
}

// maskBits converts 255.255.255.0 to 24.
func maskBits(mask string) string {
	ip := net.ParseIP(mask).To4()
	if ip == nil {
		return mask
	}
	n, _ := net.IPMask(ip).Size()
	return strconv.Itoa(n)
}

// findNetworkd returns the first matching .network file by name: networkd uses only that one.
func findNetworkd(files []File, nic NIC) (Config, bool) {
	var units []File
	for _, f := range files {
		if strings.HasSuffix(f.Path, ".network") {
			units = append(units, f)
		}
	}
	slices.SortFunc(units, func(a, b File) int { return strings.Compare(path.Base(a.Path), path.Base(b.Path)) })
	for _, f := range units {
		s := sectionsOf(f.Content)
		match := s["match"]
		macs := strings.Fields(match["macaddress"] + " " + match["permanentmacaddress"])
		names := strings.Fields(match["name"])
		if len(macs) == 0 && len(names) == 0 ||
			len(macs) > 0 && !slices.ContainsFunc(macs, func(m string) bool { return strings.EqualFold(m, nic.MAC) }) ||
			len(names) > 0 && !slices.ContainsFunc(names, func(p string) bool { is, _ := path.Match(p, nic.Name); return is }) {
			continue
		}
		dhcp := strings.ToLower(s["network"]["dhcp"])
		c := Config{File: f.Path, ID: path.Base(f.Path), DHCP: dhcp == "yes" || dhcp == "ipv4" || dhcp == "true"}
		c.MTU, _ = strconv.Atoi(s["link"]["mtubytes"])
		for _, a := range strings.Fields(s["network"]["address"] + "\n" + s["address"]["address"]) {
			c.Addresses = append(c.Addresses, canonical(a))
		}
		if rule := s["routingpolicyrule"]; len(c.Addresses) > 0 && from(rule["from"], c.Addresses[0]) {
			c.Table, _ = strconv.Atoi(rule["table"])
		}
		return c, true
	}
	return Config{}, false
}

// findInterfaces parses the stanzas of ifupdown.
func findInterfaces(files []File, nic NIC) (Config, bool) {
	var c Config
	found, automatic := false, false
	for _, f := range files {
		if !isIn(f.Path, "/etc/network", "/etc/network/interfaces.d") {
			continue
		}
		inside := false
		for line := range strings.SplitSeq(f.Content, "\n") {
			w := strings.Fields(line)
			if len(w) == 0 || strings.HasPrefix(w[0], "#") {
				continue
			}
			switch w[0] {
			case "auto", "allow-hotplug":
				inside = false
				automatic = automatic || slices.Contains(w[1:], nic.Name)
			case "iface":
				if inside = len(w) >= 4 && w[1] == nic.Name && w[2] == "inet"; inside {
					c.File, c.ID, c.DHCP, found = f.Path, nic.Name, w[3] == "dhcp", true
				}
			case "address":
				if inside && len(w) > 1 {
					c.Addresses = append(c.Addresses, canonical(w[1]))
				}
			case "netmask":
				if n := len(c.Addresses); inside && len(w) > 1 && n > 0 && !strings.Contains(c.Addresses[n-1], "/") {
					c.Addresses[n-1] = canonical(c.Addresses[n-1] + "/" + maskBits(w[1]))
				}
			case "post-up", "up":
				if inside && len(c.Addresses) > 0 && slices.Contains(w, "rule") && slices.Contains(w, "add") {
					c.table(w)
				}
			case "mtu":
				if inside && len(w) > 1 {
					c.MTU, _ = strconv.Atoi(w[1])
				}
			}
		}
	}
	return c, found && automatic
}
