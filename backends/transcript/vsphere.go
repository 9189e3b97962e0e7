package transcript

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Failure is the cause, according to a task error, vmware.log or vmkernel.log, why a VM does not start.
type Failure struct {
	scan.Envelope
	Code   *string        // nil if the text is not understood
	Cause  *string        // one sentence for display
	Device *string        // the PCI address that the message names
	Keys   map[string]any // the further keys of the code, by their JSON name
}

// Codes of failures.
const (
	MMIOSpace            = "mmio_space" // pages_needed, pages_limit
	NotPassthroughDevice = "not_passthrough_device"
	DeviceIDMismatch     = "device_id_mismatch"
	MemoryReservation    = "memory_reservation" // memsize_mb
	NoInterruptVectors   = "no_interrupt_vectors"
	VMXNET3Slot          = "vmxnet3_slot"
	ModuleNotLoaded      = "module_not_loaded" // module
	PassthroughBARs      = "passthrough_bars"  // bars; no error
	DevicePowerOnFailed  = "device_power_on_failed"
	MMIOFirmware         = "mmio_firmware" // kb_needed
	DeviceBusy           = "device_busy"
	NoDeviceFree         = "no_device_free"
	NestedVirtualization = "nested_virtualization"
	IOMMUFault           = "iommu_fault"
	VGPUPlugin           = "vgpu_plugin" // profile
)

// DeviceBAR is a memory region of a passthrough device as vmware.log lists it.
type DeviceBAR struct {
	Index     int64 `json:"index"`
	SizeBytes int64 `json:"size_bytes"`
}

// MarshalJSON writes the failure as one flat object.
func (f Failure) MarshalJSON() ([]byte, error) {
	flat := make(map[string]any, len(f.Keys)+6)
	maps.Copy(flat, f.Keys)
	flat["tool"], flat["warnings"], flat["errors"] = f.Tool, f.Warnings, f.Errors
	flat["code"], flat["cause"], flat["device"] = f.Code, f.Cause, f.Device
	return json.Marshal(flat)
}

// symptom describes the text of one code. Every expression accepts a line break for a blank.
type symptom struct {
	code, cause string
	mark        string // lower-case text that must occur before the expression is tried around it
	text        *regexp.Regexp
	keys        func(m []string) (device *string, keys map[string]any)
}

func deviceOnly(m []string) (*string, map[string]any) { return vsphereAddress(m[1]), nil }

func nothing([]string) (*string, map[string]any) { return nil, nil }

const vsphereAddressPattern = `((?:[0-9A-Fa-f]{4,5}:)?[0-9A-Fa-f]{1,3}:[0-9A-Fa-f]{1,2}[.:][0-9]{1,2})`

// symptoms are ordered from specific to general. Sources: Broadcom KB 323402 (pages), vSphere Networking "Host Is Out of
// Interrupt Vectors", KB 437651 (nested virtualization), Frank Denneman's "Could not initialize plugin libnvidia-vgx.so" (2022); the others
// are the texts of ESXi 6.5 to 8.
func symptoms() []symptom {
	return []symptom{
		{
			MMIOSpace, "The VM's MMIO window is too small for its passthrough devices.", "pages",
			regexp.MustCompile(`(?i)pages\s+needed\s+\(?([0-9]+)\)?\s+exceeds?\s+(?:the\s+)?limit\s+(?:of\s+)?\(?([0-9]+)\)?`),
			func(m []string) (*string, map[string]any) {
				return nil, map[string]any{"pages_needed": scan.Int(m[1]), "pages_limit": scan.Int(m[2])}
			},
		},
		{
			MMIOFirmware, "The VM's firmware found no room for the memory regions of its passthrough devices.", "pci mmio",
			regexp.MustCompile(`(?i)could\s+not\s+allocate\s+([0-9]+)\s+KB\s+of\s+PCI\s+MMIO`),
			func(m []string) (*string, map[string]any) { return nil, map[string]any{"kb_needed": scan.Int(m[1])} },
		},
		{
			MMIOFirmware, "The VM's firmware found no room for the memory regions of its passthrough devices.", "pcimmioerror",
			regexp.MustCompile(`(?i)pciMmioError`), nothing,
		},
		{
			DeviceBusy, "Another VM uses the device, or the host cannot assign it now.", "unavailable hardware",
			regexp.MustCompile(`(?i)failed\s+to\s+register\s+the\s+device\s+pciPassthru[0-9]+\s+for\s+` + vsphereAddressPattern +
				`\s+due\s+to\s+unavailable\s+hardware`), deviceOnly,
		},
		{
			NoDeviceFree, "The host has no free device of the model that the VM requires.", "not available on host",
			regexp.MustCompile(`(?i)one\s+or\s+more\s+devices[^.]{0,80}?required\s+by\s+VM[^.]{0,200}?are\s+not\s+available\s+on\s+host`), nothing,
		},
		{
			NestedVirtualization, "Nested virtualization is on beside a passthrough device.", "virtualization is not",
			regexp.MustCompile(`(?i)nested\s+hardware-assisted\s+virtualization\s+is\s+not\s+supported|` +
				`virtualization\s+is\s+not\s+supported\s+on\s+a\s+virtual\s+machine\s+with\s+a\s+PCI\s+passthrough`), nothing,
		},
		{
			VGPUPlugin,
			"The host's vGPU Manager refused the vGPU: the graphics type is not Shared Direct, SR-IOV is off in the BIOS (Ampere and later), " +
				"or not all memory of the VM is reserved.", "could not initialize plugin",
			regexp.MustCompile(`(?i)could\s+not\s+initialize\s+plugin\s+['"]?[^'"\s]*libnvidia-vgx\.so['"]?(?:\s+for\s+vGPU\s+['"]?([\w-]+))?`),
			func(m []string) (*string, map[string]any) { return nil, map[string]any{"profile": scan.Str(m[1])} },
		},
		{
			IOMMUFault, "The host's IOMMU rejected an access by the device.", "iommu fault",
			regexp.MustCompile(`(?i)IOMMU\s+fault`), nothing,
		},
		{
			NotPassthroughDevice, "The device assigned to the VM is not enabled for passthrough on this host.", "passthrough device",
			regexp.MustCompile(`(?i)device\s+` + vsphereAddressPattern + `\s+is\s+not\s+a\s+passthrough\s+device`), deviceOnly,
		},
		{
			NotPassthroughDevice, "The device assigned to the VM is not enabled for passthrough on this host.", "passthrough device",
			regexp.MustCompile(`(?i)is\s+not\s+a\s+passthrough\s+device`), nothing,
		},
		{
			DeviceIDMismatch, "The host has another device at the address that the VM requires.", "does not match",
			regexp.MustCompile(`(?i)(?:systemId|deviceId|vendorId)\s+does\s+not\s+match\s[^.]*?device\s+(?:currently\s+)?at\s+` +
				vsphereAddressPattern), deviceOnly,
		},
		{
			DeviceIDMismatch, "The host has another device at the address that the VM requires.", "does not match",
			regexp.MustCompile(`(?i)(?:systemId|deviceId|vendorId)\s+does\s+not\s+match`), nothing,
		},
		{
			MemoryReservation, "A VM with passthrough devices needs all its memory reserved.", "sched.mem.min",
			regexp.MustCompile(`(?i)memory\s+reservation\s*\(sched\.mem\.min\)\s+should\s+be\s+equal\s+to\s+memsize\s*\(?\s*([0-9]+)`),
			func(m []string) (*string, map[string]any) { return nil, map[string]any{"memsize_mb": scan.Int(m[1])} },
		},
		{
			NoInterruptVectors, "The host has no interrupt vectors left for another virtual function.", "out of interrupt vectors",
			regexp.MustCompile(`(?i)out\s+of\s+interrupt\s+vectors`), nothing,
		},
		{
			NoInterruptVectors, "The host has no interrupt vectors left for another virtual function.", "failed to register interrupt",
			regexp.MustCompile(`(?i)failed\s+to\s+register\s+interrupt`), nothing,
		},
		{
			VMXNET3Slot, "The VM has no PCIe slot left for a vmxnet3 adapter.", "failed to reserve slot",
			regexp.MustCompile(`(?i)failed\s+to\s+reserve\s+slot\s+for\s+(?:a\s+)?vmxnet3`), nothing,
		},
		{
			ModuleNotLoaded, "A kernel module that the hypervisor needs is not loaded.", "module",
			moduleAsked, moduleName,
		},
		{
			ModuleNotLoaded, "A kernel module that the hypervisor needs is not loaded.", "vmkload_mod",
			regexp.MustCompile("(?i)(?:run|try|execute|use|with)\\s+[`'\"]?vmkload_mod\\s+([\\w-]+)"), moduleName,
		},
	}
}

// moduleAsked are the sentences that require a kernel module; the name may be in quotes of any kind.
var moduleAsked = regexp.MustCompile("(?i)(?:" + strings.Join([]string{
	"make\\s+sure\\s+(?:that\\s+)?(?:the\\s+)?(?:(?:vm)?kernel\\s+)?module\\s+[`'\"]?([\\w-]+)[`'\"]?\\s+is\\s+loaded",
	"(?:load|insert)\\s+(?:the\\s+)?(?:(?:vm)?kernel\\s+)?module\\s+[`'\"]?([\\w-]+)",
	"module\\s+[`'\"]?([\\w-]+)[`'\"]?\\s+(?:is\\s+not|isn't|must\\s+be|needs\\s+to\\s+be|has\\s+to\\s+be|should\\s+be)\\s+loaded",
	"[`'\"]?\\b([\\w-]+)[`'\"]?\\s+(?:vm)?kernel\\s+module\\s+(?:is\\s+not|isn't|must\\s+be|needs\\s+to\\s+be|has\\s+to\\s+be|should\\s+be)\\s+loaded",
	"load\\s+(?:the\\s+)?[`'\"]?([\\w-]+?)[`'\"]?\\s+(?:(?:vm)?kernel\\s+)?module",
	"(?:run|try|execute)\\s+[`'\"]?(?:modprobe|vmkload_mod)\\s+([\\w-]+)",
}, "|") + ")")

func moduleName(m []string) (*string, map[string]any) {
	return nil, map[string]any{"module": strings.Join(m[1:], "")}
}

// VSphereError reads the text of a task error, of vmware.log or of vmkernel.log.
func VSphereError(text string) Failure {
	var f Failure
	f.Envelope, text = scan.Begin("vsphere_error", text)
	lower := strings.ToLower(text)
	for _, s := range symptoms() {
		if m := around(text, lower, s.mark, s.text); m != nil {
			f.Device, f.Keys = s.keys(m)
			if s.code == NoInterruptVectors {
				f.Device = interruptDevice(text)
			}
			return f.is(s.code, s.cause)
		}
	}
	if device, bars := passthroughBARs(text); len(bars) > 0 {
		f.Device, f.Keys = device, map[string]any{"bars": bars}
		return f.is(PassthroughBARs, "The log lists the memory regions of a passthrough device.")
	}
	if around(text, lower, "devicepoweron", devicePowerOn) != nil {
		return f.is(DevicePowerOnFailed, "A device of the VM could not be powered on; vmware.log shows which and why.")
	}
	f.NotUnderstood(false, text)
	return f
}

func (f Failure) is(code, cause string) Failure {
	f.Code, f.Cause = &code, &cause
	return f
}

// devicePowerOn matches the message in every language: the name of the module is not translated, but quoted. vmware.log names
// modules that have started too.
var devicePowerOn = regexp.MustCompile(
	`(?i)DevicePowerOn['"]?\s+power(?:ed)?\s+on\s+failed|["\x{201c}\x{201e}\x{ab}\x{300c}]\s*DevicePowerOn\s*["\x{201d}\x{201c}\x{bb}\x{300d}]`)

// around tries an expression in the neighbourhood of every mark, wherever a line break took the place of a blank.
func around(text, lower, mark string, expression *regexp.Regexp) []string {
	const before, after = 512, 768
	if len(lower) != len(text) { // a letter whose lower case is longer: the offsets would not fit
		lower = text
	}
	first, _, _ := strings.Cut(mark, " ")
	for from, tries := 0, 0; tries < 512; tries++ {
		i := strings.Index(lower[from:], first)
		if i < 0 {
			return nil
		}
		at := from + i
		from = at + len(first)
		if !follows(lower[at:], mark) {
			continue
		}
		if m := expression.FindStringSubmatch(text[max(0, at-before):min(len(text), at+after)]); m != nil {
			return m
		}
	}
	return nil
}

// follows reports whether s begins with the words of mark, with any blanks between them.
func follows(s, mark string) bool {
	for i, word := range strings.Fields(mark) {
		if i > 0 {
			trimmed := strings.TrimLeft(s, " \t\n")
			if len(trimmed) == len(s) {
				return false
			}
			s = trimmed
		}
		if !strings.HasPrefix(s, word) {
			return false
		}
		s = s[len(word):]
	}
	return true
}

// vsphereAddress reads an address of a vSphere message: bus:slot.function in decimal, unless a domain or a hexadecimal
// digit shows that it is one of vmkernel's.
func vsphereAddress(s string) *string {
	if strings.Count(s, ":") > 1 || strings.ContainsAny(s, "abcdefABCDEF") {
		return scan.PCI(s)
	}
	return scan.DecimalPCI(s)
}

var (
	interruptBDF = regexp.MustCompile(`(?i)(?:BDF\s*=\s*|PCIPassthruChangeIntrSettings:\s*(?:[0-9]+:\s+)?|VMKPCIPassthru:[^\n]*?)` +
		vsphereAddressPattern)
	barListed = regexp.MustCompile(`(?i)Device\s+` + vsphereAddressPattern + `\s+barIndex\s+([0-9]+)\s.*?\bsize\s+(0x[0-9A-Fa-f]+|[0-9]+)`)
)

// interruptDevice returns the virtual function that got no interrupt: a line near the message names it.
func interruptDevice(text string) *string {
	lower := strings.ToLower(text)
	for _, mark := range []string{"bdf", "pcipassthru"} {
		if m := around(text, lower, mark, interruptBDF); m != nil {
			return vsphereAddress(m[1])
		}
	}
	return nil
}

// passthroughBARs reads the regions of the first device that the log lists.
func passthroughBARs(text string) (device *string, bars []DeviceBAR) {
	const before, after, most = 48, 160, 4096
	for from := 0; len(bars) < most; {
		i := strings.Index(text[from:], "barIndex")
		if i < 0 {
			break
		}
		at := from + i
		from = at + len("barIndex")
		m := barListed.FindStringSubmatch(scan.Squeeze(text[max(0, at-before):min(len(text), at+after)]))
		if m == nil {
			continue
		}
		address, index, size := vsphereAddress(m[1]), scan.Int(m[2]), scan.Int(m[3])
		if address == nil || index == nil || size == nil || device != nil && *device != *address {
			continue
		}
		device = address
		bars = append(bars, DeviceBAR{*index, *size})
	}
	return device, bars
}
