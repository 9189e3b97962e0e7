package host

import (
	"cmp"
	"strings"

	goversion "github.com/hashicorp/go-version"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/row"
)

// driver judges the driver of the pNIC. nmlx4 was dropped with ESXi 8; RDMA of the others is a module of its own (RoCE
// SR-IOV Setup and Performance Study on vSphere 7.x, VMware, 2022, section 2.2.2; irdman 1.4.4.0 release
// notes).
func driver(_ *checks.Facts, h *backends.Host, n *backends.NIC) checks.Answer {
	t := backends.HostRef(h.Name)
	switch n.Driver {
	case "nmlx5_core", "bnxtnet", "qedentv", "icen":
		return row.Pass(t, "%s: %s %s", n.Device, n.Driver, n.DriverVersion)
	case "nmlx4_core", "nmlx4_en":
		if strings.HasPrefix(h.Version, "6.") || strings.HasPrefix(h.Version, "7.") {
			return row.Warn(t, "%s: %s %s is the driver of ConnectX-3, gone with ESXi 8", n.Device, n.Driver, n.DriverVersion)
		}
		return row.Fail(t, "%s: %s does not belong on ESXi %s", n.Device, n.Driver, h.Version)
	}
	return row.Fail(t, "%s: driver %s is not known to do RoCE v2", n.Device, cmp.Or(n.Driver, "none"))
}

// leastFirmware is the oldest firmware that a version of nmlx5_core supports, by PCI device id (RoCE SR-IOV Setup and
// Performance Study on vSphere 7.x, VMware, 2022, Fig. 9: driver 4.21.71.101 for ESXi 7.0 U2). Later drivers ask for no
// less.
func leastFirmware(device string) (driver, firmware string) {
	least := map[string]string{
		"1013": "12.28.2006",                       // ConnectX-4
		"1015": "14.29.1016",                       // ConnectX-4 Lx
		"1017": "16.29.1016", "1019": "16.29.1016", // ConnectX-5, ConnectX-5 Ex
		"101b": "20.29.1016", // ConnectX-6
		"101d": "22.29.1016", // ConnectX-6 Dx
		"101f": "26.29.1016", // ConnectX-6 Lx
	}
	return "4.21.71.101", least[device]
}

func firmwareMatrix(_ *checks.Facts, h *backends.Host, n *backends.NIC) checks.Answer {
	t := backends.HostRef(h.Name)
	since, least := leastFirmware(n.PCIDeviceID)
	switch {
	case n.Firmware == "":
		return row.Waiting(t, "the firmware of %s was not read (vSphere tells it from 8.0 on)", n.Device)
	case n.Driver != "nmlx5_core":
		return row.Waiting(t, "%s: no minimum is known for %s; firmware %s", n.Device, cmp.Or(n.Driver, "none"), n.Firmware)
	}
	has, err := goversion.NewVersion(n.Firmware)
	drv, err2 := goversion.NewVersion(strings.SplitN(n.DriverVersion, "-", 2)[0])
	if least == "" || err != nil || err2 != nil || drv.LessThan(goversion.Must(goversion.NewVersion(since))) {
		return row.Warn(t, "%s: firmware %s; no minimum is known for %s %s and card %s:%s", n.Device, n.Firmware, n.Driver, n.DriverVersion, n.Vendor, n.PCIDeviceID)
	}
	return row.PassIf(!has.LessThan(goversion.Must(goversion.NewVersion(least))), t, "%s: firmware %s, at least %s for %s %s", n.Device, n.Firmware, least, n.Driver, n.DriverVersion)
}
