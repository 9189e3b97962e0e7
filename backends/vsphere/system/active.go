package system

import (
	"context"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// activeSetter reads how many VFs a PF has now. The number cannot be set: it results from BIOS, firmware and driver at boot.
type activeSetter struct{ passthru }

func (s activeSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	n, _, err := s.count(ctx, t)
	return backends.ValueOf(n), err
}

// Set changes nothing: it fails if the number of VFs differs, and names the first cause it finds.
func (s activeSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, _ backends.Progress) error {
	what := "find the VFs of " + t.Name
	want, err := backends.Decoded[int](to, t.Target.Name, what)
	if err != nil {
		return err
	}
	n, most, err := s.count(ctx, t)
	if err != nil || n == want {
		return err
	}
	hint := "look at: esxcli system module parameters list -m DRIVER, with the driver of the pNIC, and whether another card has taken its place in the list of VFs"
	if most < want {
		hint = "switch SR-IOV and VT-d (AMD: IOMMU) on in the BIOS (Dell: racadm set BIOS.IntegratedDevices.SriovGlobalEnable Enabled; HPE: ilorest set Sriov=Enabled --selector=Bios.; " +
			"Supermicro: PCIe/PCI/PnP Configuration > SR-IOV Support), power-cycle the host, then resume"
	}
	return backends.Errorf(backends.KindPermanent, t.Target.Name, hint, "%s: %d are there and %d are wanted; the device offers %d", what, n, want, most)
}

// count returns the number of existing VFs and the number that the device supports.
func (s activeSetter) count(ctx context.Context, t backends.Setting) (now, most int, err error) {
	info, err := s.info(ctx, t, "count the VFs of "+t.Name)
	if err != nil {
		return 0, 0, err
	}
	pf, can := info.(*types.HostSriovInfo)
	if !can {
		return 0, 0, nil
	}
	return int(pf.NumVirtualFunction), int(pf.MaxVirtualFunctionSupported), nil
}

// passedSetter reads whether VMs can use a device now. That cannot be set: it results from enabling passthrough and a boot.
type passedSetter struct{ passthru }

func (s passedSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	if err := s.refresh(ctx, t); err != nil {
		return backends.Absent, err
	}
	info, err := s.info(ctx, t, "see whether "+t.Name+" is passed through")
	if err != nil {
		return backends.Absent, err
	}
	return backends.ValueOf(info.GetHostPciPassthruInfo().PassthruActive), nil
}

// Set changes nothing: it fails while passthrough is enabled and not active, and the error says what disables it.
func (s passedSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, _ backends.Progress) error {
	is, err := s.Read(ctx, t)
	if err != nil || is == to {
		return err
	}
	return backends.Errorf(backends.KindPermanent, t.Target.Name,
		"look in vmkernel.log for \"is not a passthrough device\" and pciehp: where the host takes the device away by PCIe hot-plug (HPE a00121002), switch "+
			"PCIe hot-plug off in the host's kernel settings as that advisory says, and reboot; else see that no driver of the host has claimed it; then resume",
		"pass %s through: it is enabled, but not active after the reboot", t.Name)
}
