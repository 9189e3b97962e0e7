package bracket

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A failedVM is a VM that did not start, with what is known about it.
type failedVM struct {
	firmware string // bios, efi
	use64    bool   // pciPassthru.use64bitMMIO
	log      string // the end of its vmware.log, "" if it could not be read
	logErr   error
}

// logTail is how much of vmware.log is read: one power-on with many devices writes less than that.
const logTail = 512 << 10

// examine reads what may explain why a VM did not start. The fault often names only a module; the cause is in vmware.log.
func (b vmPower) examine(ctx context.Context, vm place.Ref) failedVM {
	var p failedVM
	o, err := b.conn.One(ctx, vm, "config.firmware", "config.extraConfig", "config.files.logDirectory", "config.files.vmPathName")
	if err != nil {
		p.logErr = err
		return p
	}
	p.firmware = wire.Value[string](o, "config.firmware")
	for _, e := range wire.Value[types.ArrayOfOptionValue](o, "config.extraConfig").OptionValue {
		if kv := e.GetOptionValue(); strings.EqualFold(kv.Key, "pciPassthru.use64bitMMIO") {
			p.use64 = strings.EqualFold(fmt.Sprint(kv.Value), "TRUE")
		}
	}
	dir := wire.Value[string](o, "config.files.logDirectory")
	if dir == "" {
		at := wire.Value[string](o, "config.files.vmPathName")
		dir = at[:strings.LastIndex(at, "/")+1]
	}
	p.log, p.logErr = b.conn.File(ctx, b.places.Datacenter(vm), strings.TrimSuffix(dir, "/")+"/vmware.log", logTail)
	return p
}

// diagnose adds cause and remedy to the fault of a VM that did not start, or that powered off again. Unknown faults are left as
// vCenter reports them.
func (b vmPower) diagnose(ctx context.Context, vm place.Ref, err error) error {
	if kind := backends.KindOf(wire.Explain(err, "", "")); kind == backends.KindUnreachable || kind == backends.KindAuth ||
		kind == backends.KindTransient || ctx.Err() != nil {
		return err
	}
	if known, is := explainPowerOn(err); is {
		return known
	}
	text := wire.Text(err)
	p := b.examine(ctx, vm)
	for _, said := range []string{text, p.log} {
		f := transcript.VSphereError(said)
		if f.Code == nil || *f.Code == transcript.PassthroughBARs || *f.Code == transcript.DevicePowerOnFailed {
			continue
		}
		if hint := p.remedy(f); hint != "" {
			cause := strings.TrimSuffix(*f.Cause, ".")
			return backends.Permanentf("", hint, "%s%s (%s)", strings.ToLower(cause[:1]), cause[1:],
				strings.TrimPrefix(strings.TrimSpace(text), "power the VM on: "))
		}
	}
	if p.logErr != nil && strings.Contains(text, "DevicePowerOn") {
		return backends.Permanentf("", "look at vmware.log in the VM's folder: rdma-setup parse vsphere_error reads it",
			"%s (its vmware.log could not be read: %v)", text, p.logErr)
	}
	return err
}

func (p failedVM) remedy(f transcript.Failure) string {
	device := "the device"
	if f.Device != nil {
		device = *f.Device
	}
	const bios = "the guest must be installed with EFI firmware: create a new VM with EFI; do not change the firmware of an installed guest"
	switch *f.Code {
	case transcript.MMIOSpace:
		switch {
		case p.firmware == "bios":
			return bios
		case !p.use64:
			return "set pciPassthru.use64bitMMIO to TRUE and pciPassthru.64bitMMIOSizeGB to what rdma-setup mmio works out"
		}
		if pages, ok := f.Keys["pages_needed"].(*int64); ok && pages != nil {
			return fmt.Sprintf("set pciPassthru.64bitMMIOSizeGB to %d at least (gpudirect.mmio kb, KB 323402)", 1<<bits.Len64(uint64(*pages>>18)))
		}
		return "set gpudirect.mmio to kb (KB 323402)"
	case transcript.MMIOFirmware:
		if p.firmware == "bios" {
			return bios
		}
		if kb, ok := f.Keys["kb_needed"].(*int64); ok && kb != nil {
			return fmt.Sprintf(
				"set pciPassthru.64bitMMIOSizeGB to %d at least (gpudirect.mmio kb, KB 323402); where that is set, switch \"Above 4G decoding\" on "+
					"in the host's BIOS",
				1<<bits.Len64(uint64(*kb>>20)))
		}
		return "set gpudirect.mmio to kb (KB 323402); where that is set, switch \"Above 4G decoding\" on in the host's BIOS"
	case transcript.NotPassthroughDevice:
		return "enable passthrough of " + device +
			" on its host; where it is enabled, the host takes it away by PCIe hot-plug: switch that off in the " +
			"host's kernel settings (HPE a00121002) and reboot"
	case transcript.DeviceIDMismatch:
		return "take " + device + " out of the VM and add it again: cards were moved, or the VM was"
	case transcript.MemoryReservation:
		return "reserve all guest memory of the VM"
	case transcript.DeviceBusy:
		return "another VM that runs has " + device + ": shut that one down or take the device out of it (rdma-setup discover names it)"
	case transcript.NoDeviceFree:
		return "no device of that model is free on the host: shut down the VM that has it, or move this one"
	case transcript.NestedVirtualization:
		return "switch nested virtualization of the VM off"
	case transcript.VGPUPlugin:
		return "set the host's graphics type to Shared Direct, switch SR-IOV on in its BIOS (Ampere and later), and reserve all memory of the VM"
	case transcript.IOMMUFault:
		return "switch VT-d (AMD: IOMMU) on in the host's BIOS and update it; this is not the MMIO window"
	case transcript.NoInterruptVectors:
		return "reduce the number of VFs in use on this host"
	}
	return ""
}

// shutWindow is how long a VM that a user shut down counts as being worked on.
const shutWindow = 5 * time.Minute

// ShutDown returns who requested a shutdown of a VM's guest within shutWindow (VmGuestShutdownEvent); nil if no user did, or if the
// VM was powered on since (VmPoweredOnEvent, at the end of a power-on).
func ShutDown(ctx context.Context, conn *wire.Conn, vm place.Ref) (*types.VmGuestShutdownEvent, error) {
	vim := conn.VIM()
	if vim.ServiceContent.EventManager == nil {
		return nil, nil
	}
	now, err := methods.GetCurrentTime(ctx, vim)
	if err != nil {
		return nil, err
	}
	since := now.Add(-shutWindow)
	res, err := methods.QueryEvents(ctx, vim, &types.QueryEvents{This: *vim.ServiceContent.EventManager, Filter: types.EventFilterSpec{
		Entity:      &types.EventFilterSpecByEntity{Entity: vm, Recursion: types.EventFilterSpecRecursionOptionSelf},
		EventTypeId: []string{"VmGuestShutdownEvent", "VmPoweredOnEvent"}, Time: &types.EventFilterSpecByTime{BeginTime: &since},
	}})
	if err != nil {
		return nil, err
	}
	var last *types.VmGuestShutdownEvent
	var on time.Time
	for _, e := range res.Returnval {
		switch x := e.(type) {
		case *types.VmGuestShutdownEvent:
			if last == nil || x.CreatedTime.After(last.CreatedTime) {
				last = x
			}
		case *types.VmPoweredOnEvent:
			if x.CreatedTime.After(on) {
				on = x.CreatedTime
			}
		}
	}
	if last == nil || on.After(last.CreatedTime) {
		return nil, nil
	}
	return last, nil
}

// wentOff returns why a VM that was just powered on is off: a user shut it down, or it powered off by itself.
func (b vmPower) wentOff(ctx context.Context, vm place.Ref) error {
	if by, err := ShutDown(ctx, b.conn, vm); err == nil && by != nil {
		return backends.Conflictf("", "Agree with them who continues, then run rdma-setup resume.",
			"somebody else is working on this target: shut down by %s since %s", by.UserName, by.CreatedTime.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	return b.diagnose(ctx, vm, offAgain(""))
}
