package esxi

import (
	"math"
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// PCIDevices is what "esxcli hardware pci list" prints.
type PCIDevices struct {
	scan.Envelope
	Devices []PCIDevice `json:"devices"`
}

// PCIDevice is one record of it. Ids are hex digits without 0x.
type PCIDevice struct {
	PCIAddress      *string `json:"pci_address"`
	VMkernelName    *string `json:"vmkernel_name"`
	VendorName      *string `json:"vendor_name"`
	DeviceName      *string `json:"device_name"`
	ConfiguredOwner *string `json:"configured_owner"` // VMkernel, VM passthru, ...
	CurrentOwner    *string `json:"current_owner"`
	VendorID        *string `json:"vendor_id"`
	DeviceID        *string `json:"device_id"`
	SubVendorID     *string `json:"subvendor_id"`
	SubDeviceID     *string `json:"subdevice_id"`
	DeviceClass     *string `json:"device_class"`
	DeviceClassName *string `json:"device_class_name"`
	ModuleID        *int64  `json:"module_id"`
	ModuleName      *string `json:"module_name"`
	PhysicalSlot    *int64  `json:"physical_slot"`
	SlotDescription *string `json:"slot_description"`
	PassthruCapable *bool   `json:"passthru_capable"`
	ParentDevice    *string `json:"parent_device"`    // as printed
	DependentDevice *string `json:"dependent_device"` // as printed
	ResetMethod     *string `json:"reset_method"`
	FPTSharable     *bool   `json:"fpt_sharable"`
}

// Where records and rows begin on a text that came on one line.
var (
	recordStart  = regexp.MustCompile(`\b[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\s+Address:`)
	addressStart = regexp.MustCompile(`\b[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\b`)
)

// PCIList reads "esxcli hardware pci list".
func PCIList(text string) PCIDevices {
	r := PCIDevices{Devices: []PCIDevice{}}
	r.Envelope, text = scan.Begin("esxcli_hardware_pci_list", text)
	text = scan.Unfold(text, recordStart)
	records := scan.Named("Address", "Segment", "Bus", "Slot", "Function", "VMkernel Name", "Vendor Name", "Device Name",
		"Configured Owner", "Current Owner", "Vendor ID", "Device ID", "SubVendor ID", "SubDevice ID", "Device Class",
		"Device Class Name", "Programming Interface", "Revision ID", "Interrupt Line", "IRQ", "Interrupt Vector", "PCI Pin",
		"Spawned Bus", "Flags", "Module ID", "Module Name", "Chassis", "Physical Slot", "Slot Description",
		"Device Layer Bus Address", "Passthru Capable", "Parent Device", "Dependent Device", "Reset Method", "FPT Sharable",
		"FPT Shareable", "NUMA Node", "Extended Device ID", "Extended Device Name", "Assigned",
	).Records(text, scan.Opening{Head: func(line string) bool { return strings.Contains(line, ":") && scan.PCI(line) != nil }})
	for _, f := range records {
		if f.Len() == 0 {
			continue
		}
		d := PCIDevice{
			PCIAddress: scan.PCI(f.Value("Address")), VMkernelName: f.Str("VMkernel Name"), VendorName: f.Str("Vendor Name"),
			DeviceName: f.Str("Device Name"), ConfiguredOwner: f.Str("Configured Owner"), CurrentOwner: f.Str("Current Owner"),
			VendorID: scan.HexID(f.Value("Vendor ID")), DeviceID: scan.HexID(f.Value("Device ID")),
			SubVendorID: scan.HexID(f.Value("SubVendor ID")), SubDeviceID: scan.HexID(f.Value("SubDevice ID")),
			DeviceClass: scan.HexID(f.Value("Device Class")), DeviceClassName: f.Str("Device Class Name"),
			ModuleID: f.Int("Module ID"), ModuleName: f.Str("Module Name"), PhysicalSlot: f.Int("Physical Slot"),
			SlotDescription: f.Str("Slot Description"), PassthruCapable: f.Bool("Passthru Capable"),
			ParentDevice: f.Str("Parent Device"), DependentDevice: f.Str("Dependent Device"), ResetMethod: f.Str("Reset Method"),
			FPTSharable: f.Bool("FPT Sharable"),
		}
		if d.PCIAddress == nil {
			d.PCIAddress = scan.PCI(f.Head)
		}
		if d.FPTSharable == nil {
			d.FPTSharable = f.Bool("FPT Shareable")
		}
		if d.PhysicalSlot != nil && (*d.PhysicalSlot == math.MaxUint32 || *d.PhysicalSlot < 0) { // ESXi's "none"
			d.PhysicalSlot = nil
		}
		r.Devices = append(r.Devices, d)
	}
	r.NotUnderstood(len(records) > 0 || strings.Contains(text, "VMkernel Name:"), text)
	return r
}

// Passthru is the table of "esxcli hardware pci pcipassthru list".
type Passthru struct {
	scan.Envelope
	Devices []PassthruDevice `json:"devices"`
}

// PassthruDevice is the passthrough state of a device.
type PassthruDevice struct {
	PCIAddress string `json:"pci_address"`
	Enabled    *bool  `json:"enabled"`
}

var passthruRow = regexp.MustCompile(`^([0-9A-Fa-f]{3,8}:[0-9A-Fa-f]{2,3}:[0-9A-Fa-f]{2}[.:][0-7])\s*(\S+)`)

// PassthruList reads "esxcli hardware pci pcipassthru list".
func PassthruList(text string) Passthru {
	r := Passthru{Devices: []PassthruDevice{}}
	r.Envelope, text = scan.Begin("esxcli_hardware_pci_pcipassthru_list", text)
	text = scan.Unfold(text, addressStart)
	heading := false
	for line := range scan.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if m := passthruRow.FindStringSubmatch(line); m != nil {
			if address := scan.PCI(m[1]); address != nil {
				r.Devices = append(r.Devices, PassthruDevice{*address, scan.Bool(m[2])})
			}
			continue
		}
		heading = heading || strings.HasPrefix(line, "Device ID") && strings.Contains(line, "Enabled")
	}
	r.NotUnderstood(heading || len(r.Devices) > 0, text)
	return r
}

// LSPCIDevices is the output of ESXi's lspci.
type LSPCIDevices struct {
	scan.Envelope
	Devices []LSPCIDevice `json:"devices"`
}

// LSPCIDevice is one line of the list. The alias is the name that VMkernel gives the device ("vmnic2").
type LSPCIDevice struct {
	PCIAddress  string  `json:"pci_address"`
	ClassName   *string `json:"class_name"`
	Description *string `json:"description"`
	Alias       *string `json:"alias"`
}

var (
	lspciRow   = regexp.MustCompile(`^([0-9A-Fa-f]{3,8}:[0-9A-Fa-f]{2,3}:[0-9A-Fa-f]{2}\.[0-7])\s+([0-9A-Za-z][^:]*?)\s*:(?:\s+(.*))?$`)
	lspciAlias = regexp.MustCompile(`^(.*?)\s*\[((?:vm[a-z]+|vusb)[0-9]+|PF_[\w.]+)\]$`)
)

// LSPCI reads "lspci" of ESXi, also with -n.
func LSPCI(text string) LSPCIDevices {
	r := LSPCIDevices{Devices: []LSPCIDevice{}}
	r.Envelope, text = scan.Begin("esxi_lspci", text)
	text = scan.Unfold(text, addressStart)
	wrapped := false // the last description has an open bracket
	for line := range scan.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if m := lspciRow.FindStringSubmatch(line); m != nil {
			address := scan.PCI(m[1])
			if address == nil {
				wrapped = false
				continue
			}
			d := LSPCIDevice{PCIAddress: *address, ClassName: &m[2]}
			d.describe(m[3])
			r.Devices = append(r.Devices, d)
			wrapped = strings.Count(m[3], "[") > strings.Count(m[3], "]")
			continue
		}
		if n := len(r.Devices); n > 0 && line != "" && (wrapped || r.Devices[n-1].Alias == nil && (line[0] == '[' || lspciAlias.MatchString(line))) {
			last := &r.Devices[n-1]
			if last.Description != nil {
				line = *last.Description + " " + line
			}
			last.describe(line)
			wrapped = strings.Count(line, "[") > strings.Count(line, "]")
			continue
		}
		wrapped = false
	}
	r.NotUnderstood(len(r.Devices) > 0, text)
	return r
}

func (d *LSPCIDevice) describe(text string) {
	if m := lspciAlias.FindStringSubmatch(text); m != nil {
		text, d.Alias = m[1], &m[2]
	}
	d.Description = scan.Str(text)
}
