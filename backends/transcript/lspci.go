package transcript

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// PCIResult is the text of lspci, with any of -nn, -n, -D, -v, -vvv, also grepped.
type PCIResult struct {
	scan.Envelope
	Devices []PCIDevice `json:"devices"`
	Links   []PCILink   `json:"links"` // LnkCap and LnkSta lines before any device
}

// PCIDevice is one function.
type PCIDevice struct {
	PCIAddress    string         `json:"pci_address"`
	ClassName     *string        `json:"class_name"`
	ClassID       *string        `json:"class_id"`
	Description   *string        `json:"description"` // vendor and device, without ids and revision
	VendorID      *string        `json:"vendor_id"`
	DeviceID      *string        `json:"device_id"`
	Revision      *string        `json:"revision"`
	Subsystem     *string        `json:"subsystem"`
	PhysicalSlot  *string        `json:"physical_slot"`
	NUMANode      *int64         `json:"numa_node"`
	BARs          []BAR          `json:"bars"`
	ResizableBARs []ResizableBAR `json:"resizable_bars"`
	Link          *PCILink       `json:"link"`
	SRIOV         *SRIOV         `json:"sriov"`
	Driver        *string        `json:"driver"`
	KernelModules []string       `json:"kernel_modules"`
	PartNumber    *string        `json:"part_number"`
	SerialNumber  *string        `json:"serial_number"`
}

// BAR is one Region of the function itself.
type BAR struct {
	Index        *int64  `json:"index"`
	Kind         string  `json:"kind"` // memory, io
	Base         *string `json:"base"` // 0x..
	Bits         *int64  `json:"bits"` // 32, 64
	Prefetchable *bool   `json:"prefetchable"`
	SizeBytes    int64   `json:"size_bytes"`
}

// ResizableBAR is one BAR of the capability Physical Resizable BAR.
type ResizableBAR struct {
	Index        *int64 `json:"index"`
	CurrentBytes *int64 `json:"current_bytes"`
}

// PCILink is the maximum and the active state of the link; GT/s and lanes.
type PCILink struct {
	CapSpeedGTs *float64 `json:"cap_speed_gts"`
	CapWidth    *int64   `json:"cap_width"`
	StaSpeedGTs *float64 `json:"sta_speed_gts"`
	StaWidth    *int64   `json:"sta_width"`
}

// SRIOV is the SR-IOV capability of a physical function.
type SRIOV struct {
	InitialVFs *int64 `json:"initial_vfs"`
	TotalVFs   *int64 `json:"total_vfs"`
	NumVFs     *int64 `json:"num_vfs"`
}

// PCI reads the text of lspci.
func PCI(text string) PCIResult {
	p := pciParser{}
	p.result.Devices, p.result.Links = []PCIDevice{}, []PCILink{}
	p.result.Envelope, text = scan.Begin("lspci", text)
	for line := range scan.Lines(text) {
		line = scan.TrimIndent(line)
		if line == "" {
			continue
		}
		p.line(line)
	}
	p.result.NotUnderstood(len(p.result.Devices)+len(p.result.Links) > 0, text)
	return p.result
}

type pciParser struct {
	result  PCIResult
	device  *PCIDevice
	section string // name of the capability
	carry   string // a line that the terminal wrapped
}

func (p *pciParser) line(line string) {
	if c := line[0]; c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' {
		if p.head(line) {
			return
		}
	}
	if p.carry != "" {
		carried := p.carry
		p.carry = ""
		if !startsKey(line) && isContinued(carried, line) {
			line = carried + " " + line
			if p.device != nil && p.again(line) {
				return
			}
		}
	}
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		return
	}
	value = strings.TrimLeft(value, " \t")
	switch key {
	case "LnkCap":
		p.link(line, value, true)
	case "LnkSta":
		p.link(line, value, false)
	case "Capabilities":
		_, p.section, _ = strings.Cut(value, "] ")
	default:
		if p.device != nil {
			p.detail(line, key, value)
		}
	}
}

// startsKey reports whether a line begins with a key of lspci, and so continues nothing.
func startsKey(line string) bool {
	key, _, ok := strings.Cut(line, ":")
	return ok && key != "" && len(key) < 32 && !strings.ContainsAny(key, ",[(") && key[0] >= 'A' && key[0] <= 'Z'
}

// isContinued reports whether next is the rest of the previous line. If a heading has its ids, only the revision can be missing.
func isContinued(line, next string) bool {
	if strings.HasPrefix(line, "Region") {
		return strings.IndexByte("[(", next[0]) >= 0 || strings.HasPrefix(next, "prefetchable") || strings.HasPrefix(next, "non-prefetchable") ||
			strings.HasSuffix(line, " at") || strings.HasSuffix(line, "Memory") || strings.HasSuffix(line, "ports")
	}
	if scan.PCI(scan.Word(line)) == nil {
		return true
	}
	if strings.HasSuffix(line, "(rev") || strings.Contains(next, "(rev ") || strings.Contains(next, "(prog-if ") {
		return true
	}
	class, description, _ := strings.Cut(line, "]: ")
	return description != "" && class[len(class)-5] == '[' && strings.Contains(next, "]")
}

// again handles a heading whose end is on the next line.
func (p *pciParser) again(line string) bool {
	if scan.PCI(scan.Word(line)) == nil {
		return false
	}
	p.result.Devices = p.result.Devices[:len(p.result.Devices)-1]
	return p.head(line)
}

// head reads "3b:00.0 Ethernet controller [0200]: Mellanox ... [15b3:1017] (rev 01)" and the forms of -n and without -nn.
func (p *pciParser) head(line string) bool {
	word, rest, ok := strings.Cut(line, " ")
	if !ok || len(word) < 7 || len(word) > 16 || word[len(word)-2] != '.' {
		return false
	}
	address := scan.PCI(word)
	class, description, ok := strings.Cut(rest, ": ")
	if address == nil || !ok {
		return false
	}
	d := PCIDevice{PCIAddress: *address, BARs: []BAR{}, ResizableBARs: []ResizableBAR{}, KernelModules: []string{}}
	d.class(strings.TrimSpace(class))
	d.describe(strings.TrimSpace(description))
	p.result.Devices = append(p.result.Devices, d)
	p.device, p.section, p.carry = &p.result.Devices[len(p.result.Devices)-1], "", ""
	if len(line) < 512 {
		p.carry = line
	}
	return true
}

func (d *PCIDevice) class(s string) {
	if name, id, ok := cutBrackets(s); ok && len(id) == 4 && scan.HexID(id) != nil {
		d.ClassName, d.ClassID = scan.Str(name), scan.HexID(id)
		return
	}
	if id := strings.TrimPrefix(s, "Class "); len(id) == 4 && scan.HexID(id) != nil {
		d.ClassID = scan.HexID(id)
		return
	}
	d.ClassName = scan.Str(s)
}

func (d *PCIDevice) describe(s string) {
	if i := strings.LastIndex(s, "(rev "); i >= 0 {
		rev, _, _ := strings.Cut(s[i+len("(rev "):], ")")
		if d.Revision = scan.HexID(rev); d.Revision != nil {
			s = s[:i]
		}
	}
	if i := strings.LastIndex(s, "(prog-if "); i >= 0 {
		s = s[:i]
	}
	for end := len(s); end > 0; {
		i := strings.LastIndexByte(s[:end], '[')
		if i < 0 {
			break
		}
		if ids, _, ok := strings.Cut(s[i+1:], "]"); ok && d.ids(ids) {
			s = s[:i]
			break
		}
		end = i
	}
	if d.VendorID == nil && d.ids(scan.Word(s)) { // -n
		s = ""
	}
	d.Description = scan.Str(s)
}

// cutBrackets splits "name [inside]".
func cutBrackets(s string) (name, inside string, ok bool) {
	i := strings.LastIndexByte(s, '[')
	if i < 0 || !strings.HasSuffix(s, "]") {
		return s, "", false
	}
	return strings.TrimSpace(s[:i]), s[i+1 : len(s)-1], true
}

// ids reads "15b3:1017".
func (d *PCIDevice) ids(s string) bool {
	if len(s) != 9 || s[4] != ':' {
		return false
	}
	vendor, device := scan.HexID(s[:4]), scan.HexID(s[5:])
	if vendor == nil || device == nil {
		return false
	}
	d.VendorID, d.DeviceID = vendor, device
	return true
}
