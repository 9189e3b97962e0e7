package host

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// driver judges the driver of the pNIC. ESXi 8 dropped some; for the others RDMA is a separate module (RoCE SR-IOV Setup and
// Performance Study on vSphere 7.x, VMware, 2022, section 2.2.2; release notes of Intel's native RDMA driver for ESXi, 1.4.4.0).
func driver(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	switch dropped := nic.Dropped(n.Driver); {
	case dropped != "" && (strings.HasPrefix(h.Version, "6.") || strings.HasPrefix(h.Version, "7.")):
		return row.Warn(t, "%s: %s %s is the driver of %s, which ESXi 8 no longer includes", n.Device, n.Driver, n.DriverVersion, dropped)
	case dropped != "":
		return row.Fail(t, "%s: %s is not for ESXi %s", n.Device, n.Driver, h.Version)
	case nic.TooOld(n) != "":
		return row.Fail(t, "%s: %s %s; RDMA needs at least %s", n.Device, n.Driver, n.DriverVersion, nic.TooOld(n))
	case nic.Known{}.RoCE(n.Driver):
		return row.Pass(t, "%s: %s %s", n.Device, n.Driver, n.DriverVersion)
	case n.RDMADevice != "" && n.RoCEv2:
		return row.Warn(t, "%s: driver %s is not listed; the host reports RoCE v2 for it (unverified)", n.Device, n.Driver)
	}
	return row.Fail(t, "%s: driver %s is not known to support RoCE v2", n.Device, cmp.Or(n.Driver, "none"))
}

// unreported says why the firmware of a pNIC is not known.
const unreported = "vCenter does not report it; a check without --quick asks the host (esxcli network nic get)"

// firmwareMatrix compares the firmware with the oldest version that the driver's family documents.
func firmwareMatrix(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	if n.Firmware == "" {
		return row.Waiting(t, "the firmware of %s was not read: %s", n.Device, unreported)
	}
	pair, ok := nic.PairOf(n, n.DriverVersion, n.Firmware)
	if !ok {
		return row.Waiting(t, "%s: firmware %s; no minimum is known for %s %s and card %s:%s", n.Device, n.Firmware, cmp.Or(n.Driver, "no driver"), n.DriverVersion, n.Vendor, n.PCIDeviceID)
	}
	later := ""
	if pair.Later {
		later = fmt.Sprintf("; that %s needs no less is unverified", n.DriverVersion)
	}
	return row.PassIf(pair.Fits, t, "%s: firmware %s, at least %s is documented for %s %s%s", n.Device, n.Firmware, pair.Least, n.Driver, pair.Since, later)
}

// vulnerable warns of firmware that a user of a VF can attack. Version numbers of an OEM's firmware may differ from the maker's.
func vulnerable(_ *checks.Facts, t backends.Ref, h *backends.Host, n *backends.NIC) checks.Answer {
	list, known := nic.Vulnerable(n)
	switch {
	case !nic.Listed(n):
		return row.Waiting(t, "%s: neither bulletin lists card %s:%s (%s)", n.Device, n.Vendor, n.PCIDeviceID, n.Model)
	case !known:
		return row.Waiting(t, "%s: its firmware version is not known (%s): %s", n.Device, cmp.Or(n.Firmware, "not read"), unreported)
	case len(list) == 0:
		return row.Pass(t, "%s: firmware %s has no published vulnerability that a user of a VF can reach", n.Device, n.Firmware)
	}
	return row.Warn(t, "%s: firmware %s: %s", n.Device, n.Firmware, nic.Named(list, n))
}
