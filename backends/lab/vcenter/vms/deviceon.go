package vms

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A powerOnError is an error of the VMX process. One part is shown to the user, and the rest is written to vmware.log.
type powerOnError struct {
	refused *frame.Error
	log     []string
}

func (e *powerOnError) Error() string { return e.refused.Text }

func (e *powerOnError) Unwrap() error { return e.refused }

const (
	moduleFailed = "Module 'DevicePowerOn' power on failed."
	notStarted   = "Failed to start the virtual machine."
)

// deviceFailed returns the error for a device that did not start. text is an optional message for the user in addition to the
// module's message; log contains the preceding lines of vmware.log.
func deviceFailed(text string, log ...string) error {
	var parts []string
	fault := &types.GenericVmConfigFault{Reason: moduleFailed}
	for _, m := range []types.LocalizableMessage{{Key: "msg.moduletable.powerOnFailed", Message: moduleFailed},
		{Key: "msg.pciPassthru.failed", Message: text},
		{Key: "msg.vmx.poweron.failed", Message: notStarted}} {
		if m.Message != "" {
			parts = append(parts, m.Message)
			fault.FaultMessage = append(fault.FaultMessage, m)
		}
	}
	if text != "" {
		log = append(log, text)
	}
	return &powerOnError{refused: frame.Refuse(fault, strings.Join(parts, " ")), log: append(log, moduleFailed)}
}

// devicesFit returns an error if a device of the VM does not exist, or if the MMIO window of the VM is too small for its
// devices.
func devicesFit(s *world.State, v *world.VM, h *world.Host) error {
	if err := nestedFits(v); err != nil {
		return err
	}
	for n, d := range v.Devices {
		c := h.PCIDevice(d.PCI)
		if d.PCI != "" && (d.System != "" && d.System != h.UUID || c != nil && (c.Vendor != d.Vendor || c.Device != d.Device)) {
			return deviceFailed(
				fmt.Sprintf(
					"The systemId does not match the current system or the deviceId, and the vendorId does not match the device currently at %s.",
					world.ShortPCI(d.PCI)),
				fmt.Sprintf("PCIPassthru: pciPassthru%d: device ids do not match", n))
		}
	}
	trial := *v
	trial.Devices = nil
	for _, d := range v.Devices {
		clone := *d
		trial.Devices = append(trial.Devices, &clone)
	}
	if err := sharesFit(s, v, h); err != nil {
		return err
	}
	if err := s.AssignDevices(&trial); err != nil {
		return unassigned(v, h, err)
	}
	if w := s.MMIO(&trial); w.TooSmall() {
		return deviceFailed("", fmt.Sprintf("PCIPassthru: total number of pages needed (%d) exceeds limit (%d), failing", w.Pages, w.Limit))
	}
	return nil
}

// unassigned returns the error for a device that is not passed through, or that another VM uses.
func unassigned(v *world.VM, h *world.Host, err error) error {
	var d *world.DeviceError
	switch {
	case !errors.As(err, &d):
		return err
	case d.PCI == "": // vCenter cannot find a device to assign
		return frame.Refuse(&types.InsufficientResourcesFault{}, fmt.Sprintf(
			"Insufficient resources. One or more devices (pciPassthru%d) required by VM %s are not available on host %s.", d.Index, v.Name, h.Name))
	case errors.Is(err, world.ErrNotPassthrough):
		return deviceFailed("Device " + world.ShortPCI(d.PCI) + " is not a passthrough device.")
	}
	const busy = 0xbad0004 // VMkernel status: Busy
	return deviceFailed(fmt.Sprintf("Failed to register the device pciPassthru%d for %s due to unavailable hardware or software support.",
		d.Index, world.ShortPCI(d.PCI)),
		fmt.Sprintf("PCIPassthru: Failed to register device %s error = %#x", d.PCI, busy),
		"[msg.pciPassthru.createAdapterFailedPlatformNotSupported]")
}

// sharesFit returns an error if the host cannot provide the vGPUs of a VM: its GPUs have too little free capacity, or a graphics
// type that does not support vGPUs (NVIDIA, Virtual GPU Software User Guide, "Changing the Default Graphics Type in VMware
// vSphere": with a type other than Shared Direct, such VMs do not start and fail with this message).
func sharesFit(s *world.State, v *world.VM, h *world.Host) error {
	if v.ShareMB() == 0 {
		return nil
	}
	if _, err := s.PlaceShares(v); err != nil || h.Shared != "sharedDirect" {
		return frame.Refuse(&types.InsufficientGraphicsResourcesFault{},
			"The amount of graphics resource available in the parent resource pool is insufficient for the operation.")
	}
	return nil
}
