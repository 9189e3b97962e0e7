package netconf

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

const scripts = "/etc/sysconfig/network-scripts/"

// ifcfgText returns an ifcfg file of the network scripts (EL 7 and 8 without NetworkManager). It contains no UUID, because a
// duplicate UUID breaks copied files. With DHCP it accepts no routes or DNS servers (initscripts, sysconfig.txt: PEERDNS,
// DEFROUTE; nm-settings-ifcfg-rh(5): PEERROUTES).
func ifcfgText(a Static) string {
	if a.CIDR == backends.DHCP {
		return comment(a) +
			fmt.Sprintf("TYPE=Ethernet\nDEVICE=%s\nHWADDR=%s\nBOOTPROTO=dhcp\nONBOOT=yes\nDEFROUTE=no\nPEERROUTES=no\nPEERDNS=no\nMTU=%d\n",
				a.Name, strings.ToUpper(a.MAC), a.MTU)
	}
	p, _ := netip.ParsePrefix(a.CIDR)
	return comment(a) +
		fmt.Sprintf("TYPE=Ethernet\nDEVICE=%s\nHWADDR=%s\nBOOTPROTO=none\nONBOOT=yes\nDEFROUTE=no\nIPADDR=%s\nPREFIX=%d\nMTU=%d\n",
			a.Name, strings.ToUpper(a.MAC), p.Addr(), p.Bits(), a.MTU)
}

// networkScripts are the network scripts of EL 7 and 8: each file with ONBOOT is an interface (initscripts, sysconfig.txt).
type networkScripts struct{}

func (networkScripts) own(a Static) string { return scripts + "ifcfg-" + a.Name }

func (p networkScripts) add(files []File, links []Link, a Static) (File, error) {
	l, ok := linkOf(links, a.NIC)
	for _, f := range files {
		v := shellVars(f.Content)
		if strings.HasPrefix(f.Path, scripts+"ifcfg-") && !isOurs(f) && (f.Path == p.own(a) || ok && v.fits(l)) {
			return File{}, &Refusal{File: f.Path, Why: "it is for " + a.Name + " already", Hint: "Move the file to another directory."}
		}
	}
	return File{p.own(a), ifcfgText(a)}, nil
}

// vars are the variables of an ifcfg file.
type vars map[string]string

// ifcfgComment matches a comment after a value, as a shell reads it.
var ifcfgComment = regexp.MustCompile(`\s+#.*`)

func shellVars(text string) vars {
	v := vars{}
	for line := range strings.SplitSeq(text, "\n") {
		if k, val, ok := strings.Cut(strings.TrimSpace(line), "="); ok && k[:min(1, len(k))] != "#" {
			if v[k] = strings.TrimSpace(ifcfgComment.ReplaceAllString(val, "")); val != "" && strings.Contains(`"'`, val[:1]) {
				v[k], _, _ = strings.Cut(val[1:], val[:1])
			}
		}
	}
	return v
}

// fits reports whether the file is for an interface.
func (v vars) fits(l Link) bool {
	hw, dev := v["HWADDR"], v["DEVICE"]
	return hw+dev != "" && (hw == "" || strings.EqualFold(hw, l.MAC)) && (dev == "" || dev == l.Name)
}

func (v vars) says(f File) (e Effective) {
	e = Effective{File: f.Path, ID: v["NAME"], Renderer: Ifcfg, DHCP6: strings.EqualFold(v["DHCPV6C"], "yes")}
	boot := strings.ToLower(v["BOOTPROTO"])
	e.DHCP4 = boot == "dhcp" || boot == "bootp" // initscripts, ifup-eth
	for _, key := range []string{"MASTER", "BRIDGE", "TEAM_MASTER"} {
		e.Master += v[key]
	}
	e.MTU, _ = strconv.Atoi(v["MTU"])
	for _, n := range []string{"", "0", "1", "2", "3"} {
		if ip, bits := v["IPADDR"+n], v["PREFIX"+n]; ip != "" {
			if bits == "" {
				bits = maskBits(v["NETMASK"+n])
			}
			e.address(ip + "/" + bits)
		}
		if d := v["DNS"+n]; d != "" {
			e.DNS = append(e.DNS, d)
		}
	}
	for _, a := range strings.Fields(v["IPV6ADDR"] + " " + v["IPV6ADDR_SECONDARIES"]) {
		e.address(a)
	}
	for _, key := range []string{"GATEWAY", "IPV6_DEFAULTGW"} {
		if v[key] != "" {
			e.Routes = append(e.Routes, "default via "+v[key])
		}
	}
	return e
}

// Effective implements Program.
func (networkScripts) Effective(files []File, links []Link) (all []Effective, err error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for _, l := range links {
		e := Effective{Link: l.Name, Renderer: Ifcfg}
		for _, f := range files {
			v := shellVars(f.Content)
			if path.Dir(f.Path)+"/" != scripts || !strings.HasPrefix(path.Base(f.Path), "ifcfg-") {
				continue
			}
			if e.File == "" && v.fits(l) && !strings.EqualFold(v["ONBOOT"], "no") {
				e = v.says(f)
				e.Link = l.Name
			}
			if dev, ok := strings.CutPrefix(v["DEVICE"], l.Name+"."); ok && dev != "" {
				e.Uppers = append(e.Uppers, v["DEVICE"])
			}
		}
		all = append(all, e)
	}
	return all, nil
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
