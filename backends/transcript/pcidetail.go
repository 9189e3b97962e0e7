package transcript

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// detail reads a line of -v below the head of a device.
func (p *pciParser) detail(line, key, value string) {
	d := p.device
	switch {
	case key == "Subsystem":
		scan.Keep(&d.Subsystem, scan.Str(value))
	case key == "Physical Slot":
		scan.Keep(&d.PhysicalSlot, scan.Str(value))
	case key == "NUMA node":
		scan.Keep(&d.NUMANode, scan.LeadingInt(value))
	case key == "Flags": // of -v
		if _, node, ok := strings.Cut(value, "NUMA node "); ok {
			scan.Keep(&d.NUMANode, scan.LeadingInt(node))
		}
	case key == "Kernel driver in use":
		scan.Keep(&d.Driver, scan.Str(value))
	case key == "Kernel modules":
		for m := range strings.SplitSeq(value, ",") {
			if m = strings.TrimSpace(m); m != "" {
				d.KernelModules = append(d.KernelModules, m)
			}
		}
	case key == "[PN] Part number":
		scan.Keep(&d.PartNumber, scan.Str(value))
	case key == "[SN] Serial number":
		scan.Keep(&d.SerialNumber, scan.Str(value))
	case key == "Initial VFs":
		p.sriov(line)
	case strings.HasPrefix(key, "Region "):
		p.region(line, key, value)
	case strings.HasPrefix(key, "BAR ") && !strings.HasPrefix(p.section, "Virtual Resizable"):
		if size, ok := scan.After(value, "current size:"); ok {
			d.ResizableBARs = append(d.ResizableBARs, ResizableBAR{scan.Int(key[4:]), scan.Size(scan.Word(size))})
		}
	}
}

// region reads "0: Memory at 38fffe000000 (64-bit, prefetchable) [size=32M]".
func (p *pciParser) region(line, key, value string) {
	if strings.HasPrefix(p.section, "Single Root") {
		return
	}
	size, ok := scan.Between(value, "[size=", "]")
	if !ok {
		p.carry = line
		return
	}
	bytes := scan.Size(size)
	if bytes == nil {
		return
	}
	b := BAR{Index: scan.Int(key[len("Region "):]), SizeBytes: *bytes}
	if at, ok := scan.After(value, "Memory at "); ok {
		b.Kind, b.Base = "memory", base(at)
		b.Prefetchable = new(!strings.Contains(value, "non-prefetchable"))
		if attributes, ok := scan.Between(at, "(", ")"); ok {
			b.Bits = scan.LeadingInt(attributes)
		}
	} else if at, ok := scan.After(value, "I/O ports at "); ok {
		b.Kind, b.Base = "io", base(at)
	} else {
		return
	}
	p.device.BARs = append(p.device.BARs, b)
}

// base reads the address of a region; "<ignored>" and "<unassigned>" have none.
func base(s string) *string {
	word := strings.ToLower(strings.TrimPrefix(scan.Word(s), "0x"))
	if word == "" || strings.Trim(word, "0123456789abcdef") != "" {
		return nil
	}
	word = "0x" + word
	return &word
}

// sriov reads "Initial VFs: 8, Total VFs: 8, Number of VFs: 0, Function Dependency Link: 00".
func (p *pciParser) sriov(line string) {
	var s SRIOV
	for part := range strings.SplitSeq(line, ",") {
		key, value, _ := strings.Cut(part, ":")
		switch strings.TrimSpace(key) {
		case "Initial VFs":
			s.InitialVFs = scan.LeadingInt(value)
		case "Total VFs":
			s.TotalVFs = scan.LeadingInt(value)
		case "Number of VFs":
			s.NumVFs = scan.LeadingInt(value)
		}
	}
	if s.NumVFs == nil {
		p.carry = line
	}
	p.device.SRIOV = &s
}

// link reads "Port #0, Speed 16GT/s, Width x16, ASPM not supported" and "Speed 8GT/s (downgraded), Width x8 (ok)".
func (p *pciParser) link(line, value string, capability bool) {
	if !strings.Contains(value, "Width") {
		p.carry = line
		return
	}
	var speed *float64
	var width *int64
	if s, ok := scan.After(value, "Speed "); ok {
		speed = scan.LeadingFloat(s)
	}
	if s, ok := scan.After(value, "Width x"); ok {
		width = scan.LeadingInt(s)
	}
	l := p.openLink(capability)
	if capability { // a second capability of the device does not count
		scan.Keep(&l.CapSpeedGTs, speed)
		scan.Keep(&l.CapWidth, width)
	} else {
		scan.Keep(&l.StaSpeedGTs, speed)
		scan.Keep(&l.StaWidth, width)
	}
}

// openLink returns the link that a LnkCap or LnkSta line belongs to.
func (p *pciParser) openLink(capability bool) *PCILink {
	if p.device != nil {
		if p.device.Link == nil {
			p.device.Link = &PCILink{}
		}
		return p.device.Link
	}
	n := len(p.result.Links)
	if capability || n == 0 || p.result.Links[n-1].StaWidth != nil || p.result.Links[n-1].StaSpeedGTs != nil {
		p.result.Links = append(p.result.Links, PCILink{})
		n++
	}
	return &p.result.Links[n-1]
}
