package guest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// healthScript reads facts that are checked but never set. A section begins with "read" if its tool exists, because an empty
// result differs from an unread one.
func healthScript(images []string) string {
	return section("pci", "command -v lspci >/dev/null && echo read && lspci -Dnn") +
		section("kernlog", script("kernel-log.sh")) +
		section("headers", "if [ -e /lib/modules/$(uname -r)/build/Makefile ]; then echo yes; else echo no; fi") +
		section("secureboot", "command -v mokutil >/dev/null && mokutil --sb-state") +
		section("hugepages", "grep HugePages_Total /proc/meminfo") +
		section("ufw", "command -v ufw >/dev/null && ufw status") +
		section("firewalld", "command -v firewall-cmd >/dev/null && firewall-cmd --state && firewall-cmd --list-ports") +
		section("nft", "command -v nft >/dev/null && echo read && nft list ruleset") +
		section("forwarding", "cat /proc/sys/net/ipv4/ip_forward; systemctl is-active --quiet kubelet && echo kubelet; iptables -S FORWARD "+
			"| head -n 1") +
		gpuScript() +
		section("containers", containerScript()) +
		section("engine", engineScript(images)) +
		section("duplicates", script("duplicates.sh"))
}

// health stores what healthScript read; what could not be read stays nil.
func (f facts) health(g *backends.Guest) {
	if rows, ok := strings.CutPrefix(f["pci"], "read\n"); ok {
		g.PCI = pciDevices(rows)
	}
	if lines, ok := strings.CutPrefix(f["kernlog"], "read\n"); ok {
		g.KernelLog = troubles(lines)
	}
	if h := f.line("headers"); h != "" {
		g.Headers = new(h == "yes")
	}
	if s := f.line("secureboot"); strings.Contains(s, "SecureBoot") {
		g.SecureBoot = new(strings.Contains(s, "enabled"))
	}
	if w := strings.Fields(f["hugepages"]); len(w) == 2 {
		if n, err := strconv.Atoi(w[1]); err == nil {
			g.HugePages = &n
		}
	}
	g.Firewall = f.firewall()
	if w := strings.Fields(f["forwarding"]); len(w) > 0 {
		g.Forwarding = &backends.Forwarding{IPForward: w[0] == "1", Kubernetes: slices.Contains(w, "kubelet")}
		if i := slices.Index(w, "FORWARD"); i >= 0 && i+1 < len(w) {
			g.Forwarding.Policy = w[i+1]
		}
	}
	f.gpus(g)
	g.Containers, g.Engine = f.containers(), f.engine()
	f.duplicates(g)
}

// troubles returns the lines of the kernel log that indicate a problem. vmw_pvrdma being loaded before vmxnet3 is none once it
// has attached to its device, because it was then loaded again.
func troubles(log string) []string {
	list := []string{}
	for l := range strings.SplitSeq(strings.TrimSpace(log), "\n") {
		switch {
		case l == "":
		case strings.Contains(l, "attached to device"):
			list = slices.DeleteFunc(list, func(old string) bool { return strings.Contains(old, "failed to get vmxnet3 device") })
		default:
			list = append(list, l)
		}
	}
	return list
}

// pciDevices returns the network and InfiniBand controllers, VMware's paravirtual RDMA controller, and NVIDIA's GPUs.
func pciDevices(rows string) []backends.GuestDevice {
	out := []backends.GuestDevice{}
	for _, d := range transcript.PCI(rows).Devices {
		if d.VendorID == nil || d.DeviceID == nil || d.ClassID == nil || d.Description == nil {
			continue
		}
		if class := *d.ClassID; strings.HasPrefix(class, "02") || class == "0c06" ||
			strings.HasPrefix(class, "03") && *d.VendorID == NVIDIAVendor {
			out = append(out, backends.GuestDevice{Address: d.PCIAddress, Vendor: *d.VendorID, Device: *d.DeviceID, Name: *d.Description})
		}
	}
	return out
}

var portSpec = regexp.MustCompile(`\b(18515/tcp|4791/udp|18515|4791)\b`)

// firewall determines the active firewall and which ports of RDMA tests it opens: TCP 18515 for perftest's connection, UDP 4791
// for RoCE v2.
func (f facts) firewall() *backends.GuestFirewall {
	ufw, firewalld, nft := f["ufw"], strings.TrimSpace(f["firewalld"]), f["nft"]
	switch {
	case strings.Contains(ufw, "Status: active"):
		w := &backends.GuestFirewall{Kind: "ufw", Active: true}
		for l := range strings.SplitSeq(ufw, "\n") {
			if !strings.Contains(l, "ALLOW") {
				continue
			}
			if strings.HasPrefix(l, "Anywhere") {
				w.Open = append(w.Open, "all")
			}
			w.Open = append(w.Open, named(l)...)
		}
		return w
	case strings.HasPrefix(firewalld, "running"):
		return &backends.GuestFirewall{Kind: "firewalld", Active: true, Open: named(firewalld)}
	case strings.Contains(nft, "hook input") && strings.Contains(nft, "policy drop"):
		return &backends.GuestFirewall{Kind: "nftables", Active: true, Open: named(nft)}
	case strings.Contains(ufw, "Status:"):
		return &backends.GuestFirewall{Kind: "ufw"}
	case firewalld != "":
		return &backends.GuestFirewall{Kind: "firewalld"}
	case strings.HasPrefix(nft, "read"):
		return &backends.GuestFirewall{}
	}
	return nil
}

func named(text string) []string {
	var out []string
	for _, m := range portSpec.FindAllString(text, -1) {
		switch m {
		case "18515":
			m = "18515/tcp"
		case "4791":
			m = "4791/udp"
		}
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

var arpReply = regexp.MustCompile(`\[([0-9A-Fa-f:]{17})\]`)

// duplicates records other stations that answer for an address of an RDMA interface.
func (f facts) duplicates(g *backends.Guest) {
	name := ""
	for l := range strings.SplitSeq(f["duplicates"], "\n") {
		if w := strings.Fields(l); len(w) == 3 && w[0] == "address" {
			name = w[1]
		}
		m := arpReply.FindStringSubmatch(l)
		i := slices.IndexFunc(g.Interfaces, func(i backends.Interface) bool { return i.Name == name })
		if m != nil && i >= 0 && !strings.EqualFold(m[1], g.Interfaces[i].MAC) {
			g.Interfaces[i].Duplicate = strings.ToLower(m[1])
		}
	}
}
