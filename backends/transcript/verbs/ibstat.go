package verbs

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// IBStatResult is the text of ibstat.
type IBStatResult struct {
	scan.Envelope
	CAs []CA `json:"cas"`
}

// CA is one channel adapter.
type CA struct {
	Name         string   `json:"name"`
	Type         *string  `json:"type"`
	PortCount    *int64   `json:"port_count"`
	FWVersion    *string  `json:"fw_version"`
	HWVersion    *string  `json:"hw_version"`
	NodeGUID     *string  `json:"node_guid"`
	SysImageGUID *string  `json:"sys_image_guid"`
	Ports        []CAPort `json:"ports"`
}

// CAPort is one port of a CA.
type CAPort struct {
	Port           *int64   `json:"port"`
	State          *string  `json:"state"` // Active, Down, Initializing, as printed
	PhysicalState  *string  `json:"physical_state"`
	RateGbps       *float64 `json:"rate_gbps"`
	BaseLID        *int64   `json:"base_lid"`
	LMC            *int64   `json:"lmc"`
	SMLID          *int64   `json:"sm_lid"`
	CapabilityMask *string  `json:"capability_mask"`
	PortGUID       *string  `json:"port_guid"`
	LinkLayer      *string  `json:"link_layer"`
}

var ibstatKeys = map[string]bool{"ca": true, "ca type": true, "number of ports": true, "firmware version": true, "hardware version": true,
	"node guid": true, "system image guid": true, "state": true, "physical state": true, "rate": true, "base lid": true, "lmc": true,
	"sm lid": true, "capability mask": true, "port guid": true, "link layer": true}

// IBStat reads the text of ibstat.
func IBStat(text string) IBStatResult {
	r := IBStatResult{CAs: []CA{}}
	r.Envelope, text = scan.Begin("ibstat", text)
	known := func(key string) bool { return ibstatKeys[key] || portOfKey(key) != nil }
	var ca *CA
	var port *CAPort
	panicked := ""
	for line := range scan.Lines(text) {
		if lower := strings.ToLower(line); saysNoDevices(lower) || strings.Contains(lower, "ibpanic") {
			panicked = line
			continue
		}
		for _, part := range splitAt(line, "CA '", "CA: '") {
			if strings.HasPrefix(part, "CA") {
				if name, ok := scan.Between(part, "'", "'"); ok && name != "" {
					r.CAs = append(r.CAs, CA{Name: name, Ports: []CAPort{}})
					ca, port = &r.CAs[len(r.CAs)-1], nil
					_, part, _ = strings.Cut(part, "'")
					_, part, _ = strings.Cut(part, "'")
				}
			}
			if ca == nil {
				continue
			}
			for _, p := range scan.Pairs(part, known) {
				if n := portOfKey(p.Key); n != nil {
					ca.Ports = append(ca.Ports, CAPort{Port: n})
					port = &ca.Ports[len(ca.Ports)-1]
				} else if !ca.set(p.Key, p.Value) && port != nil {
					port.set(p.Key, p.Value)
				}
			}
		}
	}
	if panicked != "" && len(r.CAs) == 0 {
		r.Fail(scan.CodeNoDevices, panicked, nil)
	}
	r.NotUnderstood(len(r.CAs) > 0, text)
	return r
}

// portOfKey reads the number of "port 1".
func portOfKey(key string) *int64 {
	n, ok := strings.CutPrefix(key, "port ")
	if !ok {
		return nil
	}
	return scan.Int(n)
}

// splitAt splits a line into parts that each begin with a mark.
func splitAt(line string, marks ...string) []string {
	var out []string
	for {
		at := -1
		for _, m := range marks {
			if i := strings.Index(line[min(1, len(line)):], m); i >= 0 && (at < 0 || i+1 < at) {
				at = i + 1
			}
		}
		if at < 0 {
			return append(out, strings.TrimSpace(line))
		}
		out = append(out, strings.TrimSpace(line[:at]))
		line = line[at:]
	}
}

func (c *CA) set(key, value string) bool {
	switch key {
	case "ca type":
		keep(&c.Type, scan.Str(value))
	case "number of ports":
		keep(&c.PortCount, scan.LeadingInt(value))
	case "firmware version":
		keep(&c.FWVersion, scan.Str(value))
	case "hardware version":
		keep(&c.HWVersion, scan.Str(value))
	case "node guid":
		keep(&c.NodeGUID, scan.GUID(scan.Word(value)))
	case "system image guid":
		keep(&c.SysImageGUID, scan.GUID(scan.Word(value)))
	default:
		return false
	}
	return true
}

func (p *CAPort) set(key, value string) {
	switch key {
	case "state":
		keep(&p.State, scan.Str(value))
	case "physical state":
		keep(&p.PhysicalState, scan.Str(value))
	case "rate":
		keep(&p.RateGbps, scan.LeadingFloat(value))
	case "base lid":
		keep(&p.BaseLID, scan.LeadingInt(value))
	case "lmc":
		keep(&p.LMC, scan.LeadingInt(value))
	case "sm lid":
		keep(&p.SMLID, scan.LeadingInt(value))
	case "capability mask":
		keep(&p.CapabilityMask, scan.Str(value))
	case "port guid":
		keep(&p.PortGUID, scan.GUID(scan.Word(value)))
	case "link layer":
		keep(&p.LinkLayer, scan.Str(value))
	}
}
