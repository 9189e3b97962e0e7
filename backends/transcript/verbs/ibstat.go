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

// caKeys are the fields of a CA.
var caKeys = scan.Keys[CA]{
	"ca type":           func(c *CA, v string) { scan.Keep(&c.Type, scan.Str(v)) },
	"number of ports":   func(c *CA, v string) { scan.Keep(&c.PortCount, scan.LeadingInt(v)) },
	"firmware version":  func(c *CA, v string) { scan.Keep(&c.FWVersion, scan.Str(v)) },
	"hardware version":  func(c *CA, v string) { scan.Keep(&c.HWVersion, scan.Str(v)) },
	"node guid":         func(c *CA, v string) { scan.Keep(&c.NodeGUID, scan.GUID(scan.Word(v))) },
	"system image guid": func(c *CA, v string) { scan.Keep(&c.SysImageGUID, scan.GUID(scan.Word(v))) },
}

// caPortKeys are the fields of a port, and a key that ends the value before it.
var caPortKeys = scan.Keys[CAPort]{
	"state":           func(p *CAPort, v string) { scan.Keep(&p.State, scan.Str(v)) },
	"physical state":  func(p *CAPort, v string) { scan.Keep(&p.PhysicalState, scan.Str(v)) },
	"rate":            func(p *CAPort, v string) { scan.Keep(&p.RateGbps, scan.LeadingFloat(v)) },
	"base lid":        func(p *CAPort, v string) { scan.Keep(&p.BaseLID, scan.LeadingInt(v)) },
	"lmc":             func(p *CAPort, v string) { scan.Keep(&p.LMC, scan.LeadingInt(v)) },
	"sm lid":          func(p *CAPort, v string) { scan.Keep(&p.SMLID, scan.LeadingInt(v)) },
	"capability mask": func(p *CAPort, v string) { scan.Keep(&p.CapabilityMask, scan.Str(v)) },
	"port guid":       func(p *CAPort, v string) { scan.Keep(&p.PortGUID, scan.GUID(scan.Word(v))) },
	"link layer":      func(p *CAPort, v string) { scan.Keep(&p.LinkLayer, scan.Str(v)) },
	"ca":              func(*CAPort, string) {},
}

// IBStat reads the text of ibstat.
func IBStat(text string) IBStatResult {
	r := IBStatResult{CAs: []CA{}}
	r.Envelope, text = scan.Begin("ibstat", text)
	known := func(key string) bool { return caKeys.Known(key) || caPortKeys.Known(key) || portOfKey(key) != nil }
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
				} else if !caKeys.Set(ca, p.Key, p.Value) && port != nil {
					caPortKeys.Set(port, p.Key, p.Value)
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

// IBStatusResult is the text of ibstatus.
type IBStatusResult struct {
	scan.Envelope
	Ports []PortStatus `json:"ports"`
}

// PortStatus is one port.
type PortStatus struct {
	Device            string   `json:"device"`
	Port              *int64   `json:"port"`
	DefaultGID        *string  `json:"default_gid"`
	BaseLID           *int64   `json:"base_lid"`
	SMLID             *int64   `json:"sm_lid"`
	State             *string  `json:"state"` // ACTIVE
	StateCode         *int64   `json:"state_code"`
	PhysicalState     *string  `json:"physical_state"` // LinkUp
	PhysicalStateCode *int64   `json:"physical_state_code"`
	RateGbps          *float64 `json:"rate_gbps"`
	Width             *string  `json:"width"`      // 4X
	SpeedName         *string  `json:"speed_name"` // EDR
	LinkLayer         *string  `json:"link_layer"`
}

// portStatusKeys are the fields of a port, and a key that ends the value before it.
var portStatusKeys = scan.Keys[PortStatus]{
	"default gid": func(p *PortStatus, v string) { scan.Keep(&p.DefaultGID, scan.GID(scan.Word(v))) },
	"base lid":    func(p *PortStatus, v string) { scan.Keep(&p.BaseLID, scan.LeadingInt(v)) },
	"sm lid":      func(p *PortStatus, v string) { scan.Keep(&p.SMLID, scan.LeadingInt(v)) },
	"state":       func(p *PortStatus, v string) { p.StateCode, p.State = coded(v) },
	"phys state":  func(p *PortStatus, v string) { p.PhysicalStateCode, p.PhysicalState = coded(v) },
	"rate": func(p *PortStatus, v string) {
		scan.Keep(&p.RateGbps, scan.LeadingFloat(v))
		if inside, ok := scan.Between(v, "(", ")"); ok {
			words := append(strings.Fields(inside), "", "")
			scan.Keep(&p.Width, scan.Str(words[0]))
			scan.Keep(&p.SpeedName, scan.Str(words[1]))
		}
	},
	"link layer": func(p *PortStatus, v string) { scan.Keep(&p.LinkLayer, scan.Str(v)) },
	"status":     func(*PortStatus, string) {},
}

// IBStatus reads the text of ibstatus.
func IBStatus(text string) IBStatusResult {
	r := IBStatusResult{Ports: []PortStatus{}}
	r.Envelope, text = scan.Begin("ibstatus", text)
	var port *PortStatus
	for line := range scan.Lines(text) {
		if saysNoDevices(strings.ToLower(line)) {
			r.Fail(scan.CodeNoDevices, line, nil)
			continue
		}
		for _, part := range splitAt(line, "Infiniband device '", "InfiniBand device '") {
			if name, n, ok := statusHead(part); ok {
				r.Ports = append(r.Ports, PortStatus{Device: name, Port: n})
				port = &r.Ports[len(r.Ports)-1]
			}
			if port == nil {
				continue
			}
			for _, p := range scan.Pairs(part, portStatusKeys.Known) {
				portStatusKeys.Set(port, p.Key, p.Value)
			}
		}
	}
	r.NotUnderstood(len(r.Ports) > 0, text)
	return r
}

// statusHead reads "Infiniband device 'mlx5_0' port 1 status:".
func statusHead(line string) (device string, port *int64, ok bool) {
	if len(line) < 10 || !strings.EqualFold(line[:10], "infiniband") {
		return "", nil, false
	}
	device, ok = scan.Between(line, "'", "'")
	if !ok || device == "" {
		return "", nil, false
	}
	if rest, found := scan.After(line, "' port"); found {
		port = scan.LeadingInt(rest)
	}
	return device, port, true
}

// coded reads "4: ACTIVE".
func coded(value string) (code *int64, name *string) {
	number, rest, ok := strings.Cut(value, ":")
	if !ok {
		return nil, scan.Str(value)
	}
	return scan.Int(number), scan.Str(rest)
}
