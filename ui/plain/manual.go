package plain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// The ways to make a change and to remove a setting manually that need no value but its name and its target's.
var (
	ways = map[backends.Kind]string{
		backends.KindPortGroup: "vSphere Client: Networking > distributed switch > Distributed Port Group > New, then Teaming and failover: " +
			"one active uplink",
		backends.KindMember:   "vSphere Client: Networking > NAME > Add and Manage Hosts",
		backends.KindVMKNic:   "vSphere Client: host > Configure > VMkernel adapters > Add Networking, no service, static IPv4 address NAME",
		backends.KindHardware: "vSphere Client: VM > Actions > Compatibility > Upgrade VM Compatibility",
		backends.KindMemory:   "vSphere Client: VM > Edit Settings > Memory > Reserve all guest memory",
		backends.KindCPU:      "vSphere Client: VM > Edit Settings > CPU > Reservation",
		backends.KindLatency:  "vSphere Client: VM > Edit Settings > VM Options > Advanced > Latency Sensitivity",
		backends.KindNouveau: "in the guest: a file in /etc/modprobe.d with `blacklist nouveau` and `options nouveau modeset=0`, " +
			"then `update-initramfs -u -k all` or `dracut --force --regenerate-all`, and a reboot",
		backends.KindRestart: "in the guest: `systemctl reboot`, then compare `ip address` and `ip route` with before",
		backends.KindGPUPersist: "in the guest: `nvidia-smi -pm 1`, and a systemd unit that runs it at every boot, after " +
			"nvidia-persistenced",
		backends.KindPersist: "in the guest: name the modules in a file in /etc/modules-load.d; where needed a systemd unit loads " +
			"vmw_pvrdma anew at boot",
		backends.KindActivePassthrough: "vSphere Client: host > Configure > Hardware > PCI Devices: NAME is Enabled, not Enabled / Needs reboot",
		backends.KindNested: "vSphere Client: VM off > Edit Settings > CPU > Hardware virtualization: Expose hardware assisted " +
			"virtualization to the guest OS is not ticked",
		backends.KindActiveGraphics: "vSphere Client: host > Configure > Hardware > Graphics > Graphics Devices: the active type of the GPUs " +
			"is Shared Direct",
		backends.KindDeviceGroup: "vSphere Client: VM off > Edit Settings > Add New Device > PCI Device: the group NAME",
	}
	removals = map[backends.Kind]string{
		backends.KindOFED:        "in the guest: `/usr/sbin/ofed_uninstall.sh --force`, then the distribution's RDMA packages again",
		backends.KindSwitch:      "vSphere Client: Networking > TARGET > Delete",
		backends.KindPortGroup:   "vSphere Client: Networking > TARGET > Delete",
		backends.KindMember:      "vSphere Client: Networking > NAME > Add and Manage Hosts > Remove hosts",
		backends.KindVMKNic:      "vSphere Client: host > Configure > VMkernel adapters > the one with NAME > Remove",
		backends.KindAdapter:     "vSphere Client: VM > Edit Settings > network adapter on NAME > Remove device",
		backends.KindDevice:      "vSphere Client: VM off > Edit Settings > PCI device NAME > Remove device",
		backends.KindDeviceGroup: "vSphere Client: VM off > Edit Settings > PCI devices of the group NAME > Remove device",
		backends.KindVGPU:        "vSphere Client: VM off > Edit Settings > PCI devices NVIDIA GRID vGPU NAME > Remove device",
		backends.KindExtra:       "vSphere Client: VM off > Edit Settings > Advanced Parameters > NAME > delete, or set it to nothing",
	}
)

// manual returns how to make the change without this program: in the vSphere Client, or with a command.
func manual(c plan.Change) string {
	if c.Kind == backends.KindBuild {
		return buildManual(c)
	}
	ways := ways
	if c.To.IsAbsent() {
		ways = removals
	}
	if way, known := ways[c.Kind]; known {
		return strings.NewReplacer("NAME", cell(c.Name), "TARGET", cell(c.Target.Name)).Replace(way)
	}
	if c.To.IsAbsent() {
		return "in the guest: " + cell(plan.Title(c))
	}
	if words := cmp.Or(hostManual(c), deviceManual(c)); words != "" {
		return words
	}
	switch c.Kind {
	case backends.KindSwitch:
		if c.From.IsAbsent() {
			return "vSphere Client: Networking > datacenter > Distributed Switch > New Distributed Switch"
		}
		return "vSphere Client: Networking > " + cell(c.Target.Name) + " > Configure > Properties > Edit"
	case backends.KindOption:
		return code("esxcli system settings advanced set -o %s -s %s", ShellWord("/"+strings.ReplaceAll(c.Name, ".", "/")), ShellWord(text(c.To)))
	case backends.KindFirewall:
		return code("esxcli network firewall ruleset set -r %s -e %t", ShellWord(c.Name), c.To == backends.ValueOf(true))
	case backends.KindExtra:
		return "vSphere Client: VM > Edit Settings > VM Options > Advanced > Configuration Parameters: " + code("%s = %s", c.Name, text(c.To))
	case backends.KindAdapter:
		kind := "PVRDMA"
		var a backends.AdapterSpec
		if c.To.Decode(&a) == nil && a.Type == "sriov" {
			kind = "SR-IOV passthrough (physical function " + cell(a.PF) + ", Guest OS MTU Change: Allow)"
		}
		return "vSphere Client: VM > Edit Settings > Add New Device > Network Adapter, adapter type " + kind + ", network " + cell(c.Name)
	}
	return guestManual(c)
}

func guestManual(c plan.Change) string {
	switch c.Kind {
	case backends.KindPackages:
		var p backends.PackageSpec
		if c.To.Decode(&p) != nil || len(p.Installed) == 0 {
			return "in the guest: install the RDMA packages with apt-get or dnf"
		}
		return "in the guest: " + code("apt-get install %s", strings.Join(p.Installed, " ")) + ", or the same with dnf"
	case backends.KindOFED:
		var o backends.OFEDSpec
		if c.To.Decode(&o) != nil {
			return "in the guest: install MLNX_OFED from the matching archive"
		}
		if strings.HasPrefix(o.Version, "DOCA-") {
			return "in the guest: install " + code("%s", o.Archive) + ", then the package doca-ofed, then " +
				code("/etc/init.d/openibd force-restart")
		}
		return "in the guest: unpack " + code("%s", o.Archive) + ", in it " +
			code("./mlnxofedinstall --force --add-kernel-support --without-fw-update") +
			", then " + code("/etc/init.d/openibd force-restart")
	case backends.KindModules:
		var m []string
		if c.To.Decode(&m) != nil || len(m) == 0 {
			return unreadModules(c)
		}
		return "in the guest: " + code("modprobe -a %s", strings.Join(m, " "))
	case backends.KindNICName:
		return "in the guest: a file in /etc/systemd/network that ends in .link, with " + code("[Match] MACAddress=%s", c.Name) + " and " +
			code("[Link] Name=%s", text(c.To)) +
			", then " + code("update-initramfs -u -k all") + " where there is one"
	case backends.KindAddress:
		var a backends.AddressSpec
		rule := ""
		if c.To.Decode(&a) == nil && a.Table != 0 {
			ip, _, _ := strings.Cut(a.CIDR, "/")
			rule = "; with them " + code("ip rule add from %s table %d priority %[2]d", ip, a.Table) +
				" and in that table a route to the subnet by the interface"
		}
		return "in the guest: netplan or nmcli, static address and MTU for the interface with the adapter's MAC" + rule
	case backends.KindARP:
		var a backends.ARPSpec
		if c.To.Decode(&a) != nil {
			break
		}
		return "in the guest: a file in /etc/sysctl.d with " + code("net/ipv4/conf/DEV/arp_ignore = %d", a.Ignore) +
			", " + code("net/ipv4/conf/DEV/arp_announce = %d", a.Announce) + " and " + code("net/ipv4/conf/DEV/rp_filter = %d", a.RPFilter) +
			", then " + code("sysctl --system")
	case backends.KindMemlock:
		return "in the guest: a file in /etc/security/limits.d with memlock " + cell(text(c.To))
	case backends.KindTrafficClass:
		return "in the guest, at every boot: " + code("cma_roce_tos -d DEV -t %s", text(c.To)) +
			", or the same number into default_roce_tos below /sys/kernel/config/rdma_cm/DEV"
	case backends.KindPortQoS:
		var q backends.QoSSpec
		if c.To.Decode(&q) != nil {
			break
		}
		ofed, iproute := nic.PortCommands(q)
		return "in the guest, at every boot: " + code("%s", ofed) + ", or without MLNX_OFED " + code("%s", iproute[0]) + " and " +
			code("%s", iproute[1])
	case backends.KindEnvironment:
		return "in the guest: a file in /etc/profile.d that exports " + code("UCX_IB_TRAFFIC_CLASS=%[1]s NCCL_IB_TC=%[1]s", text(c.To)) +
			" and NCCL_IB_GID_INDEX, the index of the RoCE v2 address"
	case backends.KindImage:
		return "in the guest: save what " + code("rdma-setup generate dockerfile") + " prints as Dockerfile in an empty folder, and there " +
			code("docker build -t %s .", c.Name)
	case backends.KindPort:
		driver := "vmw_pvrdma"
		if _, passthrough := backends.OfHCA(c.Name); passthrough {
			driver = "mlx5_ib"
		}
		return "in the guest: " + code("ip link set DEV up") + "; if the port stays down: " + code("modprobe -r %s; modprobe %s", driver, driver)
	}
	return cell(plan.Title(c))
}

// text returns a value as a user would type it: without quotes, "" if absent.
func text(v backends.Value) string {
	var s string
	switch {
	case v.IsAbsent():
		return ""
	case v.Decode(&s) == nil:
		return s
	}
	return v.String()
}

// code formats a command in Markdown; a backquote would end it.
func code(format string, args ...any) string {
	return "`" + strings.ReplaceAll(fmt.Sprintf(format, args...), "`", "'") + "`"
}

// ShellWord quotes a word for a POSIX shell if necessary.
func ShellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-+:@", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
