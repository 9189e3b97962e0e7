package twin

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/perftest"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// setup copies how a guest is set up: its packages, the files of this program, its network, and what is active but not persistent.
func (t *Twin) setup(w *world.VM, v *backends.VM, g *backends.Guest) {
	system := netconf.NetworkManager
	if debian(w) {
		system = netconf.Netplan
	}
	if g.NetConfig != "" && g.NetConfig != string(system) {
		t.note(v.Name, "its network is configured by "+g.NetConfig+": by "+string(system)+" in the twin")
	}
	for _, name := range softwareOf(g, debian(w)) {
		if g.Kernel != "" {
			name = strings.ReplaceAll(name, g.Kernel, "KERNEL")
		}
		w.Guest.Packages = append(w.Guest.Packages, name)
	}
	if g.Packages == nil {
		t.note(v.Name, "its packages were not read: those of a new installation")
	}
	w.Guest.BuiltIn = g.BuiltIn
	for _, f := range guest.Written(g, system, func(i *backends.Interface) string { return nameOf(v, g, i) }) {
		w.Guest.Files = append(w.Guest.Files, world.File{Path: f.Path, Mode: f.Mode, Text: f.Text, Link: f.Link})
	}
	if g.MOFED != "" {
		w.Guest.Files = append(w.Guest.Files, world.File{Path: "/usr/bin/ofed_info", Mode: 0o755,
			Text: "#!/bin/sh\necho " + ssh.Quote(g.MOFED+":") + "\n"})
	}
	if g.OwnTests != "" {
		tests(w, backends.PerftestPrefix(backends.BuildSamePerftest)+"/bin", perftest.OwnPrefix)
	}
	if !g.Built[backends.BuildPerftest].IsAbsent() && g.CUDATests != nil {
		tests(w, cmp.Or(g.CUDATests.Dir, backends.PerftestPrefix(backends.BuildPerftest)+"/bin"), perftest.CUDAPrefix)
	}
	t.network(w, v, g, system)
	w.Guest.Entered = entered(g)
	for _, d := range g.RDMA {
		if d.MAC != "" && d.Name != "" {
			if w.Guest.Names == nil {
				w.Guest.Names = map[string]string{}
			}
			w.Guest.Names[d.MAC] = d.Name
		}
	}
}

// tests adds the programs of a perftest that was built in the guest.
func tests(w *world.VM, dir, prefix string) {
	for _, name := range []string{"ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat"} {
		w.Guest.Files = append(w.Guest.Files, world.File{Path: dir + "/" + name, Program: prefix + name})
	}
}

// debian reports whether a guest has apt and netplan in the lab.
func debian(w *world.VM) bool {
	return strings.HasPrefix(w.Guest.OS, "ubuntu-") || strings.HasPrefix(w.Guest.OS, "debian-")
}

// softwareOf returns the names of a guest's packages. NVIDIA's driver may be in a package that nobody looked for.
func softwareOf(g *backends.Guest, debian bool) []string {
	var names []string
	driver := g.NVIDIA == nil || g.NVIDIA.Driver == ""
	for name, version := range g.Packages {
		if version != "" {
			names = append(names, name)
			driver = driver || strings.Contains(name, "nvidia") && !strings.Contains(name, "utils") && !strings.Contains(name, "peer")
		}
	}
	switch {
	case driver:
	case g.NVIDIA.VGPUDriver != nil && *g.NVIDIA.VGPUDriver:
		names = append(names, "nvidia-linux-grid-570")
	case debian && g.NVIDIA.DMABuf:
		names = append(names, "nvidia-driver-570-server-open")
	case debian:
		names = append(names, "nvidia-driver-570-server")
	case g.NVIDIA.DMABuf:
		names = append(names, "kmod-nvidia-open-dkms", "nvidia-driver-cuda")
	default:
		names = append(names, "kmod-nvidia-latest-dkms", "nvidia-driver-cuda")
	}
	slices.Sort(names)
	return names
}

// fileOf matches the configuration files that this program writes for an interface, with the name of its settings.
var fileOf = regexp.MustCompile(`(?:^|[/-])rdma-setup-([^/]+?)(?:\.yaml|\.nmconnection|\.network)?$`)

// nameOf returns the name of the settings of an interface: that of the adapter's port group, or of a card that is passed through; ""
// for an interface that this program has not configured.
func nameOf(v *backends.VM, g *backends.Guest, i *backends.Interface) string {
	names := []string{backends.WholeHCA}
	for _, a := range v.Adapters {
		if a.MAC == i.MAC {
			names = append(names, a.PortGroup, backends.BaseName(a.PortGroup))
		}
	}
	for _, d := range v.Devices {
		names = append(names, backends.HCAName(d.PCI))
	}
	a := guest.AddressOf(i, "")
	for _, a.PortGroup = range names {
		// files of network-scripts have the same name whoever wrote them
		if f, ok := netconf.FileFor(netconf.System(g.NetConfig), a); ok && f.Path == i.Config && fileOf.MatchString(f.Path) {

			return a.PortGroup
		}
	}
	if m := fileOf.FindStringSubmatch(i.Config); m != nil {
		return m[1]
	}
	return ""
}

// network copies the interfaces: as VMware Tools report them, the files that configure them, and DHCP.
func (t *Twin) network(w *world.VM, v *backends.VM, g *backends.Guest, system netconf.System) {
	for _, i := range g.Interfaces {
		if i.Virtual {
			continue
		}
		if i.Up {
			w.Guest.NICs = append(w.Guest.NICs, world.GuestNIC{MAC: i.MAC, Name: i.Name, Addrs: i.Addresses, MTU: i.MTU, OwnARP: i.ARP.Ignore > 0})
		}
		if len(v.Adapters) > 0 && i.MAC == v.Adapters[0].MAC {
			continue // the lab's own configuration
		}
		if len(i.Addresses) > 1 {
			t.note(v.Name, "of several addresses of an interface the first one is persistent")
		}
		if lease := slices.IndexFunc(i.Addresses, func(a string) bool { return !strings.Contains(a, ":") }); i.DHCP && lease >= 0 {
			if w.Guest.Leases == nil {
				w.Guest.Leases = map[string]string{}
			}
			w.Guest.Leases[i.MAC] = i.Addresses[lease]
		}
		a := guest.AddressOf(&i, i.Name)
		if a.CIDR == "" || nameOf(v, g, &i) != "" {
			continue
		}
		f, _ := netconf.FileFor(system, a)
		w.Guest.Files = append(w.Guest.Files,
			world.File{Path: path.Join(path.Dir(f.Path), strings.Replace(path.Base(f.Path), "rdma-setup-", "", 1)),
				Mode: system.Mode(), Text: foreign(f.Content)})
	}
}

// foreign removes the marks of this program from a configuration file, and the priority of its profiles.
func foreign(text string) string {
	_, text, _ = strings.Cut(text, "\n")
	return strings.NewReplacer("rdma-setup-", "", "autoconnect-priority=999\n", "").Replace(text)
}

// entered returns the commands that make active what is not persistent in a guest.
func entered(g *backends.Guest) string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	var unload, load []string
	for _, m := range guest.DefaultModules() {
		switch {
		case slices.Contains(g.Loaded, m):
			load = append(load, m)
		case slices.Contains(g.Available, m) && len(g.RDMA) > 0:
			unload = append(unload, m)
		}
	}
	slices.Reverse(unload) // those that others need last
	if len(unload) > 0 {
		add("for m in %s; do grep -q \"^$m \" /proc/modules && modprobe -r $m; done", strings.Join(unload, " "))
	}
	if len(load) > 0 {
		add("for m in %s; do grep -q \"^$m \" /proc/modules || modprobe $m; done", strings.Join(load, " "))
	}
	for _, i := range g.Interfaces {
		if i.Virtual || i.Persistent {
			continue
		}
		nic := ssh.Quote(i.Name)
		switch {
		case !i.Up:
			add("ip link set dev %s down", nic)
		case len(i.Addresses) > 0 && !i.DHCP:
			add("ip link set dev %s mtu %d up", nic, i.MTU)
			for _, a := range i.Addresses {
				add("ip addr add %s dev %s", ssh.Quote(a), nic)
			}
		}
	}
	for _, d := range g.RDMA {
		name := ssh.Quote(d.Name)
		if d.Driver == backends.PVRDMAModule && d.State == "PORT_ACTIVE" {
			add("grep -q ACTIVE /sys/class/infiniband/%s/ports/1/state || { modprobe -r %[2]s; modprobe %[2]s; }", name, d.Driver)
		}
		if d.Class != nil && *d.Class > 0 && !d.ClassKept {
			add("cd /sys/kernel/config/rdma_cm && { [ -d %[1]s ] || mkdir %[1]s; }; echo %[2]d >%[1]s/ports/1/default_roce_tos", name, *d.Class)
		}
		if q := d.QoS; q != nil && (q.Kept == nil || q.Partly) {
			qos(add, d.Interface, q)
		}
	}
	if g.NVIDIA != nil {
		for _, d := range g.NVIDIA.Devices {
			if on := d.Persistent; on != nil && *on != (g.GPUUnit == backends.GPUUnitEnabled) {
				add("nvidia-smi -i %s -pm %d", ssh.Quote(d.PCI), map[bool]int{true: 1}[*on])
			}
		}
	}
	return b.String()
}

// qos adds the commands for how a port treats priorities.
func qos(add func(string, ...any), nic string, q *backends.PortQoS) {
	nic = ssh.Quote(nic)
	for _, p := range q.PFC {
		add("dcb pfc set dev %s prio-pfc %d:on", nic, p)
	}
	for _, dscp := range slices.Sorted(maps.Keys(q.DSCP)) {
		add("dcb app replace dev %s dscp-prio %d:%d", nic, dscp, q.DSCP[dscp])
	}
}
