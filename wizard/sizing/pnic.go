package sizing

import (
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// PNICWish returns what the answers require of a host's RDMA pNIC, for backends.ChoosePNIC.
func PNICWish(a *answers.Answers, host string) backends.PNICWish {
	w := OpenWish(a)
	w.Slot, w.NUMA, w.Position = a.NIC.Slot, string(a.NIC.NUMA), a.NIC.Position
	w.MAC, w.Device, w.Driver, w.SpeedMbps = string(a.NIC.MACs[host]), a.NIC.Device, a.NIC.Driver, a.NIC.Speed.Mbps()
	return w
}

// OpenWish returns what the answers require of any pNIC, for a page that lists the choices.
func OpenWish(a *answers.Answers) backends.PNICWish {
	w := backends.PNICWish{Protocol: a.PVRDMA.Protocol, Switch: a.Switch.Name, VMKs: a.PVRDMA.VMKNic.Range(), Drivers: nic.Known{}}
	w.AllowNoHCA = a.NoHCA()
	switch {
	case a.VFs():
		w.Purpose = backends.VFParent
	case a.WholeCard():
		w.Purpose = backends.WholeCard
	}
	return w
}
