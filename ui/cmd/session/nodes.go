package session

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Nodes returns, for every VM of the answers, the RDMA device behind its address, by facts: the adapter's MAC, the port's state,
// the GID table.
func Nodes(a *answers.Answers, inv *backends.Inventory) []perftest.Node {
	var nodes []perftest.Node
	for _, v := range a.VMs {
		vm := inv.VM(v.Name)
		networks := a.Networks(v)
		if vm == nil || len(networks) == 0 || !v.Guest.Managed() {
			continue
		}
		n := perftest.Node{VM: vm.Name, Host: vm.Host}
		if ip := found(inv, vm, networks[0]); ip.IsValid() {
			n.IP = ip.Addr().String()
		}
		host := inv.Host(vm.Host)
		for _, ad := range vm.Adapters {
			if ad.PortGroup != networks[0].PortGroup {
				continue
			}
			if host != nil {
				n.Port, n.LinkMbps = uplink(host, ad.Switch)
				n.NoHCA = backends.NoHCA(host, sizing.PNICWish(a, host.Name))
				wired(host, &n)
			}
			n.VLAN = tagged(inv, ad)
			if g := inv.Guest(vm.Name); g != nil {
				device(g, strings.ToLower(ad.MAC), &n)
			}
		}
		if host != nil && host.State != "connected" {
			n.Unread, n.Remedy = "vCenter is not connected to "+host.Name+" ("+host.State+"), the host of "+vm.Name, "reconnect the host"
		}
		g := inv.Guest(vm.Name)
		cardNode(host, vm, g, networks[0].PortGroup, &n)
		if g != nil {
			n.Unread, n.Remedy = cmp.Or(n.Unread, g.Error), cmp.Or(n.Remedy, g.Hint)
			n.Version = g.Tests()
			if g.OwnTests != "" {
				n.Dir = backends.PerftestPrefix(backends.BuildSamePerftest) + "/bin"
			}
		}
		if g.HasImage(a.Container.Image) {
			n.Engine, n.Image = g.Engine.Name, a.Container.Image
		}
		if a.Mode == answers.GPUDirect {
			n.GPU = gpuOf(a, inv, vm, g, networks[0].PortGroup, n.Device)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// found returns the address of an RDMA interface: that of the answers, or with dhcp the guest's current one; invalid without one.
func found(inv *backends.Inventory, vm *backends.VM, n answers.Adapter) netip.Prefix {
	g := inv.Guest(vm.Name)
	if mac := current.RDMAMAC(vm, g, n.PortGroup); g != nil && mac != "" {
		return n.IP.Of(g.Interface(mac))
	}
	return n.IP.Prefix
}

// wired adds what the host reports about a node's port: the switch that it hears, and its PCIe link.
func wired(h *backends.Host, n *perftest.Node) {
	p := h.NIC(n.Port)
	if p == nil {
		return
	}
	plugged(h, p.PCI, n)
	if h.System == nil {
		return
	}
	n.Leaf = h.System.Neighbours.Value[n.Port].Switch
	if s := h.System.Firmware[nic.CardAddress(p.PCI)].Slot; s != (backends.Slot{}) {
		n.Slot = perftest.Slot{Host: h.Name, Device: n.Port, Gen: s.Gen, Lanes: s.Lanes}
	}
}

// plugged adds the card of the function at a PCI address, and the PCIe switch above it. A switch is an upstream port and a
// downstream port for each slot; a card without one is directly below its root port.
func plugged(h *backends.Host, pci string, n *perftest.Node) {
	n.Card = nic.CardAddress(pci)
	if above := h.Bridges(pci); len(above) > 2 {
		n.PCIeSwitch = above[1]
	}
}

// tagged reports whether the frames of an adapter leave the host with a VLAN tag.
func tagged(inv *backends.Inventory, ad backends.Adapter) bool {
	pg := inv.PortGroup(ad.PortGroup)
	if pg == nil {
		return false
	}
	id, err := strconv.Atoi(pg.VLAN)
	return err == nil && id > 0
}

// uplink returns the pNIC of a host for traffic on a switch.
func uplink(h *backends.Host, dvs string) (string, int) {
	for _, n := range h.NICs {
		if n.Switch == dvs {
			return n.Device, n.SpeedMbps
		}
	}
	return "", 0
}

func device(g *backends.Guest, mac string, n *perftest.Node) {
	n.User, n.MAC = g.MemlockKB == -1, mac
	d := g.Verbs(mac)
	if d == nil || d.State != "PORT_ACTIVE" {
		return
	}
	n.Device, n.MTU, n.Bind = d.Name, d.ActiveMTU, d.Bind
	n.GID = -1
	for _, gid := range d.GIDs {
		if strings.Contains(gid.Type, "v2") && gid.IPv4 == n.IP {
			n.GID = gid.Index
		}
	}
	if n.GID < 0 {
		n.Device = "" // no RoCE v2 entry for the address: nothing to test with
	}
}

// SharedNodes returns the RDMA device and the GID index that all guests share.
func SharedNodes(inv *backends.Inventory, a *answers.Answers) (device string, gid int, notes []string) {
	a, gid = recipe.Deal(a, inv), -1
	sameDevice, sameGID, first := true, true, true
	for _, v := range a.VMs {
		d, index, ok := rdmaAddress(inv, v.Name, a.Networks(v))
		if !ok {
			notes = append(notes, v.Name+": no RDMA device with its address was found")
			continue
		}
		if first {
			device, gid, first = d, index, false
			continue
		}
		sameDevice, sameGID = sameDevice && d == device, sameGID && index == gid
	}
	if !sameDevice {
		device, notes = "", append(notes, "the guests' RDMA devices have different names: NCCL detects them by itself")
	}
	if !sameGID {
		gid, notes = -1, append(notes, "the guests' RoCE v2 addresses have different indexes: NCCL (2.21 and later) detects them by itself")
	}
	return device, gid, notes
}

// rdmaAddress returns the RDMA device with one of a VM's addresses in its guest, and the GID index of that address.
func rdmaAddress(inv *backends.Inventory, name string, networks []answers.Adapter) (device string, gid int, ok bool) {
	vm := inv.VM(name)
	if vm == nil {
		return "", -1, false
	}
	g := inv.Guest(vm.Name)
	if g == nil {
		return "", -1, false
	}
	for _, n := range networks {
		own := found(inv, vm, n)
		for _, d := range g.RDMA {
			for _, entry := range d.GIDs {
				if ip, err := netip.ParseAddr(entry.IPv4); err == nil && own.IsValid() && ip == own.Addr() && entry.Type == "RoCE v2" {
					return d.Name, entry.Index, true
				}
			}
		}
	}
	return "", -1, false
}
