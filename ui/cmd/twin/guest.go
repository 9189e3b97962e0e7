package twin

import (
	"cmp"
	"fmt"
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
	w.Guest = world.Guest{OS: standIn, Hostname: hostname(v.Name), Up: w.On && v.Tools == "guestToolsRunning", Booted: t.made, Boots: 1, BIOS: v.Firmware == "bios"}
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

// facts copies the facts of a guest.
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
	case g.NVIDIA != nil && g.NVIDIA.Driver != "":
		w.Guest.Preset = "gpudirect"
	case g.CUDATests != nil:
		w.Guest.Preset = "gpu"
	case g.Engine != nil:
		w.Guest.Preset = "docker"
	case g.Perftest != "" || g.MemlockKB == -1 || len(g.Persist.Modules) > 0:
		w.Guest.Preset = "pvrdma"
		w.Guest.Defects = append(w.Guest.Defects, defects(g)...)
	}
	t.addresses(w, v, g)
	t.note("", "guests have the packages of a new installation, and the RDMA packages if they were found to be set up; files of other software are left out")
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

// defects returns missing settings of a guest that is set up for PVRDMA.
func defects(g *backends.Guest) []world.Defect {
	var out []world.Defect
	for defect, is := range map[world.Defect]bool{
		world.NoPerftest: g.Perftest == "", world.NoMemlock: g.MemlockKB != -1, world.NoModules: len(g.Persist.Modules) == 0,
		world.NoReload: g.Persist.Reload == "", world.MOFED: g.MOFED != "",
		world.NoDriver: !slices.Contains(g.Available, backends.PVRDMAModule) && !slices.Contains(g.Loaded, backends.PVRDMAModule),
	} {
		if is {
			out = append(out, defect)
		}
	}
	slices.Sort(out)
	return out
}

// addresses copies the address of the first RDMA adapter; a guest of the lab has only one.
func (t *Twin) addresses(w *world.VM, v *backends.VM, g *backends.Guest) {
	first := true
	for _, a := range v.Adapters {
		i := g.Interface(a.MAC)
		if a.Type != "pvrdma" && a.Type != "sriov" {
			continue
		}
		switch {
		case !first && i != nil && len(i.Addresses) > 0:
			t.note(v.Name, "addresses of further RDMA adapters are left out")
		case first && (i == nil || len(i.Addresses) == 0):
			w.Guest.Defects = append(w.Guest.Defects, world.NoAddress)
		case first:
			w.Guest.RDMAAddr = i.Addresses[0]
			if i.MTU < 9000 {
				w.Guest.Defects = append(w.Guest.Defects, world.LowMTU)
			}
			if !i.Persistent {
				w.Guest.Defects = append(w.Guest.Defects, world.AddressLost)
			}
		}
		first = false
	}
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
