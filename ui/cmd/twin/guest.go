package twin

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// standIn is the default system of a guest whose system is unknown.
const standIn = "ubuntu-22.04"

// guest builds the guest of a VM from its facts. A guest that was not read gets a default system; the answers of the twin name it
// only if the answers of the site do.
func (t *Twin) guest(s *world.State, w *world.VM, v *backends.VM) {
	g := t.site.Guest(v.Name)
	w.Guest = world.Guest{OS: standIn, Hostname: hostname(v.Name), Up: w.On && v.Tools == "guestToolsRunning", Booted: t.made, Boots: 1,
		BIOS: v.Firmware == "bios"}
	at := slices.IndexFunc(t.asked(), func(a answers.VM) bool { return a.Name == v.Name || a.Name == v.Path })
	if at < 0 {
		s.Strangers = append(s.Strangers, v.Name)
	} else if ip := t.asked()[at].IP; ip.IsValid() {
		w.Guest.RDMAAddr = ip.Prefix.String()
	}
	w.Guest.RDMAAddr = cmp.Or(w.Guest.RDMAAddr, fmt.Sprintf("192.168.%d.%d/16", 50+(11+w.Index)/250, (11+w.Index)%250))
	for _, ip := range v.IPs {
		if a, err := netip.ParseAddr(ip); err == nil && a.Is4() && w.Guest.Lease == "" {
			w.Guest.Lease = ip + "/16"
		}
	}
	if g == nil || g.Error != "" || g.OS == "" {
		w.Guest.User = scenario.User(standIn)
		if at >= 0 {
			t.note(v.Name, "the guest was not read ("+t.unread(v, g, t.asked()[at])+"): a fresh "+standIn+" is used instead")
		}
		return
	}
	t.facts(w, v, g)
	for _, a := range v.Adapters {
		if p, err := netip.ParsePrefix(w.Guest.Leases[a.MAC]); err == nil && (a.Type == "pvrdma" || a.Type == "sriov") {
			s.DHCP = p.Masked().String() // of the RDMA network
		}
	}
}

// unread returns the reason why a guest was not read.
func (t *Twin) unread(v *backends.VM, g *backends.Guest, asked answers.VM) string {
	switch {
	case g != nil && g.Error != "":
		return g.Error
	case g != nil:
		return "its system is not known"
	case v.Power != "poweredOn":
		return "the VM is " + cmp.Or(v.Power, "in an unknown state")
	case t.answers == nil:
		return "it was collected without -f, which names the guests to read"
	case !asked.Guest.Managed():
		return "guest.manage is false in the answers"
	}
	return "collect did not try it"
}

func (t *Twin) facts(w *world.VM, v *backends.VM, g *backends.Guest) {
	w.Guest.OS = systemOf(g)
	if w.Guest.OS == "" {
		w.Guest.OS = standIn
		t.note(v.Name, "the lab does not know "+cmp.Or(g.Pretty, g.OS)+": "+standIn+" is used instead")
	}
	w.Guest.User, w.Guest.SudoAsks = scenario.User(w.Guest.OS), g.Sudo == "password"
	if g.Sudo == "none" {
		w.Guest.Defects = append(w.Guest.Defects, world.NoSudo)
	}
	for _, a := range v.Adapters[:min(1, len(v.Adapters))] {
		if i := g.Interface(a.MAC); i != nil && len(i.Addresses) > 0 {
			w.Guest.Lease = i.Addresses[0]
		}
	}
	switch {
	case g.CUDATests != nil && g.Built[backends.BuildPerftest].IsAbsent():
		w.Guest.Preset = "gpu"
	case g.Engine != nil:
		w.Guest.Preset = "docker"
	}
	w.Guest.Defects = append(w.Guest.Defects, defects(g)...)
	t.setup(w, v, g)
	t.unsupported(v, g)
}

// unsupported notes facts of a guest that the twin does not have.
func (t *Twin) unsupported(v *backends.VM, g *backends.Guest) {
	t.note("",
		"guests have the packages of a new installation and those that this program knows, in the lab's versions; files of other software "+
			"are left out")
	for _, row := range []struct {
		what string
		is   bool
	}{
		{"the files that software is installed from", slices.Contains(slices.Collect(maps.Values(g.Archives)), true)},
		{"the container engine", g.Engine != nil && g.CUDATests != nil},
		{"an interrupted installation of MLNX_OFED", g.OFEDUnfinished},
		{"the license token of its vGPUs", g.NVIDIA != nil && g.NVIDIA.Token},
		{"the firewall, huge pages, the clock and the log of its kernel", g.Firewall != nil || g.HugePages != nil || g.ClockSkew != nil ||
			g.KernelLog != nil},
	} {
		if row.is {
			t.note(v.Name, "not copied: "+row.what)
		}
	}
}

// systemOf returns the lab's name of a guest's system, "" if it has none.
func systemOf(g *backends.Guest) string {
	major, _, _ := strings.Cut(g.Version, ".")
	for _, name := range []string{g.OS + "-" + g.Version, g.OS + "-" + major} {
		if slices.Contains(lab.Systems(), name) {
			return name
		}
	}
	return ""
}

// defects returns what is wrong with a guest and cannot be set by its files.
func defects(g *backends.Guest) []world.Defect {
	var out []world.Defect
	has := func(m string) bool { return slices.Contains(g.Available, m) || slices.Contains(g.Loaded, m) }
	if !has(backends.PVRDMAModule) && len(g.Available) > 0 {
		out = append(out, world.NoDriver)
	}
	if has("nouveau") {
		out = append(out, world.Nouveau)
	}
	for _, d := range g.RDMA {
		// The driver is loaded again at boot, and the port is down all the same.
		i := g.Interface(d.MAC)
		if d.Driver == backends.PVRDMAModule && d.Driver == g.Persist.Reload && d.State == "PORT_DOWN" && i != nil && i.Up {
			return append(out, world.PortDown)
		}
	}
	return out
}

// asked returns the VMs that the answers of the bundle name; all of the site if there are no answers.
func (t *Twin) asked() []answers.VM {
	if t.answers != nil {
		return t.answers.VMs
	}
	var list []answers.VM
	for _, v := range t.site.VMs {
		if !v.Template && !strings.HasPrefix(v.Name, "vCLS-") {
			list = append(list, answers.VM{Name: v.Name})
		}
	}
	return list
}

// hostname converts the name of a VM to a valid host name.
func hostname(name string) string {
	keep := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, name)
	return strings.Trim(keep[:min(len(keep), 63)], "-")
}
