package verbs

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

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
