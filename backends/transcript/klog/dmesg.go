// Package klog parses logs: the kernel log of a guest, and the errors of vSphere and of vmware.log.
package klog

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Log contains the notable events of a kernel log. A log without events is not an error.
type Log struct {
	scan.Envelope
	Events []Event `json:"events"`
}

// Event is a notable line. Lines with equal code and keys are one event with a count.
type Event struct {
	Code       string
	PCIAddress *string        // of the device, nil when the line names none
	Keys       map[string]any // the further keys of the code, by their JSON name
	Count      int
}

// Codes of events.
const (
	GPUXid            = "gpu_xid"                // xid
	GPUBARInvalid     = "gpu_bar_invalid"        // bar
	BARNoSpace        = "bar_no_space"           // bar, size_bytes
	GPUProbeFailed    = "gpu_probe_failed"       // error
	GPUNone           = "gpu_none_initialized"   //
	GPUInitFailed     = "gpu_init_failed"        // status
	GPUPowerCable     = "gpu_power_cable"        //
	GPUResetNeeded    = "gpu_reset_needed"       //
	NICFirmware       = "nic_firmware"           // fw_version
	PCIeLimited       = "pcie_bandwidth_limited" // available_gbps, capable_gbps, speed_gts, width, limited_at
	PeermemContext    = "peermem_invalid_context"
	SymbolMismatch    = "symbol_mismatch"    // module, symbol
	UnknownSymbol     = "unknown_symbol"     // module, symbol, error
	ModuleLoadFailure = "module_load_failed" // module, reason
)

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) {
	flat := make(map[string]any, len(e.Keys)+3)
	maps.Copy(flat, e.Keys)
	flat["code"], flat["pci_address"], flat["count"] = e.Code, e.PCIAddress, e.Count
	return json.Marshal(flat)
}

// Dmesg reads a kernel log: dmesg, journalctl -k, /dev/kmsg, and the messages of modprobe.
func Dmesg(text string) Log {
	r := Log{Events: []Event{}}
	r.Envelope, text = scan.Begin("dmesg", text)
	c := collector{seen: map[string]int{}}
	for line := range scan.AllLines(text) {
		for _, message := range messages(line) {
			c.message(message)
		}
	}
	c.flush()
	r.Events = append(r.Events, c.events...)
	return r
}

// messages splits a line with several messages, each with its time stamp.
func messages(line string) []string {
	var out []string
	from := 0
	for i := 1; i < len(line); i++ {
		if line[i-1] != ' ' {
			continue
		}
		if line[i] == '[' && isStamp(line[i:]) || line[i] == 'N' && strings.HasPrefix(line[i:], "NVRM: ") && strings.Contains(line[from:i], "NVRM: ") {
			out = append(out, line[from:i])
			from = i
		}
	}
	return append(out, line[from:])
}

// isStamp matches "[ 4769.352187]".
func isStamp(s string) bool {
	end := strings.IndexByte(s[:min(len(s), 24)], ']')
	if end < 4 {
		return false
	}
	_, err := strconv.ParseFloat(strings.TrimSpace(s[1:end]), 64)
	return err == nil && strings.Contains(s[:end], ".")
}

// stamped reports whether a line begins a message.
func stamped(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line == "" || line[0] == '[' || strings.Contains(line, "kernel:") || strings.Contains(line, "NVRM:") || strings.Contains(line, ",-;")
}

// maxWait is the maximum number of lines between a GPU's message about a BAR and the line that names it.
const maxWait = 8

type collector struct {
	events  []Event
	seen    map[string]int // index into events by code and keys
	pending bool           // a BAR was reported as invalid, its line is still to come
	waited  int
	before  string   // a line that the next one may continue
	told    []string // the marks in before that resulted in an event
}

func (c *collector) message(line string) {
	if c.pending {
		if e, ok := barLine(line); ok {
			c.pending = false
			c.add(e)
			return
		}
		if c.waited++; c.waited > maxWait {
			c.flush()
		}
	}
	before, told := c.before, c.told
	c.before = ""
	marks := finders(line, nil)
	joined := ""
	if before != "" && !stamped(line) && len(before) < 2048 {
		joined = before + " " + strings.TrimSpace(line)
	}
	c.told = c.found(marks, line, joined)
	if len(c.told) == 0 && joined != "" {
		line = joined
		marks = finders(line, told)
		c.told = append(told, c.found(marks, line, "")...)
	}
	if isMessage(line) || len(c.told) < len(marks) {
		c.before = line
	}
}

// found adds the events of a line and returns the marks that resulted in one. Joined is the line after the one that may have been
// wrapped, for the address of the device.
func (c *collector) found(marks []mark, line, joined string) (told []string) {
	for _, m := range marks {
		e, ok := m.find(line)
		if !ok {
			continue
		}
		if e.PCIAddress == nil && joined != "" {
			if joinedEvent, ok := m.find(joined); ok && joinedEvent.PCIAddress != nil {
				e = joinedEvent
			}
		}
		told = append(told, m.text)
		if e.Code != GPUBARInvalid {
			c.add(e)
			continue
		}
		c.flush()
		if e, ok := barLine(line); ok {
			c.add(e)
		} else {
			c.pending, c.waited = true, 0
		}
	}
	return told
}

// isMessage reports whether a line begins with a time stamp, of dmesg, the journal or /dev/kmsg: text without one after it is its
// wrapped rest.
func isMessage(line string) bool {
	if line = strings.TrimLeft(line, " \t"); line == "" {
		return false
	}
	head := line[:min(len(line), 80)]
	return line[0] == '[' && strings.IndexByte(head[:min(len(head), 40)], ']') > 0 || strings.Contains(head, " kernel: ") || strings.Contains(head, ",-;")
}

// flush stops waiting for the line of a BAR.
func (c *collector) flush() {
	if c.pending {
		c.pending = false
		c.add(Event{Code: GPUBARInvalid, Keys: map[string]any{"bar": nil}})
	}
}

func (c *collector) add(e Event) {
	key, err := json.Marshal(e) // the count is still zero, and keys come sorted
	if err != nil {
		return
	}
	if i, ok := c.seen[string(key)]; ok {
		c.events[i].Count++
		return
	}
	c.seen[string(key)] = len(c.events)
	e.Count = 1
	c.events = append(c.events, e)
}

// Tools returns the parsers of this package by tool id.
func Tools() map[string]func(string) any {
	return map[string]func(string) any{
		"dmesg":         func(s string) any { return Dmesg(s) },
		"vsphere_error": func(s string) any { return VSphereError(s) },
	}
}
