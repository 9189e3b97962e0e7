package transcript

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// MSTState is what "mst start" and "mst status" print.
type MSTState struct {
	scan.Envelope
	Action              *string     `json:"action"`  // start or status
	Started             *bool       `json:"started"` // every step that was reported succeeded; nil for status
	PCIModuleLoaded     *bool       `json:"pci_module_loaded"`
	PCIConfModuleLoaded *bool       `json:"pciconf_module_loaded"`
	Devices             []MSTDevice `json:"devices"`

	begun string // the module of the last step that was loading
}

// MSTDevice is a device that the firmware tools can open.
type MSTDevice struct {
	Name         *string `json:"name"`   // mt4129_pciconf0, nil before mst is started
	Path         *string `json:"path"`   // /dev/mst/..., nil on ESXi
	Access       *string `json:"access"` // "PCI configuration cycles access"
	PCIAddress   *string `json:"pci_address"`
	ChipRevision *string `json:"chip_revision"`
}

// CodeModuleLoad is the error of "mst start" when a module could not be loaded.
const CodeModuleLoad = "module_load_failed"

var (
	mstDevice = regexp.MustCompile(`^(/dev/(?:mst/\S+|mt[0-9]+_[\w.]+)|mt[0-9]+_[\w.]+)(?:\s+-\s+(.*))?$`)
	mstRow    = regexp.MustCompile(`^(\S+?)\(rev:(\w+)\)\s+(\S+)\s+(\S+)`)
	mstBus    = regexp.MustCompile(`(?:domain:)?bus:dev\.fn=([0-9A-Fa-f:.]+)`)
	mstChip   = regexp.MustCompile(`Chip revision is:?\s*(\w+)`)
	mstStep   = regexp.MustCompile(`(?i)\b(loading|unloading)\s+MST\s+(PCI configuration|PCI|[A-Z0-9]+)\s+module[^-]*?(?:-\s*(\w+)|$)`)
	mstWarn   = regexp.MustCompile(`(?i)mst_(pciconf|pci)\s+is\s+already\s+loaded`)
	mstModule = regexp.MustCompile(`(?i)^MST\s+(PCI configuration|PCI)\s+module\s+(is\s+not\s+loaded|not\s+loaded|(?:is\s+)?loaded)`)
	esxiMST   = regexp.MustCompile(`(?i)(?:^|\bstart\s+)Module\s+(\S+)\s+(?:is\s+)?(?:already\s+)?loaded\b`)
	mstFailed = regexp.MustCompile(
		`(?i)could not insert|fatal: module|failed to load|unable to load|load(?:ing)? .*\bfail|cannot load module|can't load module|module .*\bnot (?:found|loaded)\b.*fail`)
)

// MST reads "mst start", "mst restart" and "mst status", also with -v.
func MST(text string) MSTState {
	r := MSTState{Devices: []MSTDevice{}}
	r.Envelope, text = scan.Begin("mst", text)
	for line := range scan.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || scan.IsRule(line) {
			continue
		}
		r.line(line)
	}
	if r.Action != nil && *r.Action == "status" {
		r.Started = nil
	}
	r.NotUnderstood(r.Action != nil || len(r.Devices) > 0, text)
	return r
}

func (r *MSTState) act(name string) {
	if r.Action == nil {
		r.Action = &name
	}
}

// step records the result of a step of the start.
func (r *MSTState) step(ok bool) {
	r.act("start")
	if r.Started != nil {
		ok = ok && *r.Started
	}
	r.Started = &ok
}

func (r *MSTState) module(name string, loaded bool) {
	switch strings.ToLower(name) {
	case "pci":
		r.PCIModuleLoaded = &loaded
	case "pci configuration", "pciconf":
		r.PCIConfModuleLoaded = &loaded
	}
}

func (r *MSTState) line(line string) {
	lower := strings.ToLower(line)
	failed := mstFailed.MatchString(line)
	switch {
	case strings.HasPrefix(lower, "mst modules:"), strings.HasPrefix(lower, "mst devices:"), strings.HasPrefix(lower, "pci devices:"):
		r.act("status")
	case strings.Contains(lower, "no mst devices"), strings.Contains(lower, "no devices were found"):
		r.act("status")
		r.Fail(scan.CodeNoDevices, line, nil)
	case strings.HasPrefix(lower, "starting mst"):
		r.act("start")
	case mstWarn.MatchString(line):
		r.module(mstWarn.FindStringSubmatch(line)[1], true)
		r.step(true)
	case mstStep.MatchString(line):
		m := mstStep.FindStringSubmatch(line)
		loading := strings.EqualFold(m[1], "loading")
		ok := !failed && !strings.HasPrefix(strings.ToLower(m[3]), "fail")
		r.step(ok)
		if r.begun = ""; loading {
			r.begun = m[2]
		}
		if ok {
			r.module(m[2], loading)
		} else if loading {
			r.module(m[2], false)
			r.Fail(CodeModuleLoad, line, nil)
		}
	case mstModule.MatchString(line):
		m := mstModule.FindStringSubmatch(line)
		r.act("status")
		r.module(m[1], !strings.Contains(strings.ToLower(m[2]), "not"))
	case failed, strings.HasPrefix(lower, "- failure"):
		r.step(false)
		r.module(r.begun, false)
		r.Fail(CodeModuleLoad, line, nil)
	case esxiMST.MatchString(line):
		r.step(true)
	default:
		r.device(line)
	}
}

// device reads the rows of "mst status -v", and a device's line with the lines below it.
func (r *MSTState) device(line string) {
	if m := mstRow.FindStringSubmatch(line); m == nil {
		r.plainDevice(line)
	} else {
		r.act("status")
		d := MSTDevice{PCIAddress: scan.PCI(m[4]), ChipRevision: &m[2]}
		if !scan.IsNull(m[3]) {
			d.name(m[3])
		}
		r.Devices = append(r.Devices, d)
	}
}

func (r *MSTState) plainDevice(line string) {
	if m := mstDevice.FindStringSubmatch(line); m != nil {
		r.act("status")
		access := m[2]
		for _, detail := range []string{"domain:bus:", "bus:dev.fn=", "Chip revision"} {
			access, _, _ = strings.Cut(access, detail)
		}
		d := MSTDevice{Access: scan.Str(strings.TrimSuffix(strings.TrimSpace(access), "."))}
		d.name(m[1])
		r.Devices = append(r.Devices, d)
	}
	if len(r.Devices) == 0 {
		return
	}
	last := &r.Devices[len(r.Devices)-1]
	if m := mstBus.FindStringSubmatch(line); m != nil {
		scan.Keep(&last.PCIAddress, scan.PCI(m[1]))
	}
	if m := mstChip.FindStringSubmatch(line); m != nil {
		scan.Keep(&last.ChipRevision, &m[1])
	}
}

func (d *MSTDevice) name(word string) {
	d.Name = scan.Str(word[strings.LastIndexByte(word, '/')+1:])
	if strings.HasPrefix(word, "/") {
		d.Path = &word
	}
}
