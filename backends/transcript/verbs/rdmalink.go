package verbs

import (
	"encoding/json"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// RDMALinkResult is the text of rdma link (iproute2), also with -j.
type RDMALinkResult struct {
	scan.Envelope
	Links []RDMALink `json:"links"`
}

// RDMALink is one port as the kernel sees it.
type RDMALink struct {
	Device        string  `json:"device"`
	Port          *int64  `json:"port"`
	State         *string `json:"state"`          // ACTIVE
	PhysicalState *string `json:"physical_state"` // LINK_UP
	Netdev        *string `json:"netdev"`
	LID           *int64  `json:"lid"`
	SMLID         *int64  `json:"sm_lid"`
	LMC           *int64  `json:"lmc"`
	SubnetPrefix  *string `json:"subnet_prefix"`
}

// RDMALinks parses the text of rdma link. The beginning of a line is "link mlx5_0/1" or "0/1: mlx5_0/1:", the rest is pairs of a
// name and a value, which may continue on the next line.
func RDMALinks(text string) RDMALinkResult {
	r := RDMALinkResult{Links: []RDMALink{}}
	r.Envelope, text = scan.Begin("rdma_link", text)
	var link *RDMALink
	attribute := "" // whose value comes next
	for line := range scan.Lines(text) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "[{") && r.json(trimmed) {
			continue
		}
		words := strings.Fields(line)
		for i, w := range words {
			if device, port, ok := portName(w); ok && (i == 0 || isHead(words[i-1])) {
				r.Links = append(r.Links, RDMALink{Device: device, Port: port})
				link, attribute = &r.Links[len(r.Links)-1], ""
				continue
			}
			if link == nil {
				continue
			}
			if attribute != "" {
				linkKeys.Set(link, attribute, w)
				attribute = ""
			} else if linkKeys.Known(w) {
				attribute = w
			}
		}
	}
	r.NotUnderstood(len(r.Links) > 0, text)
	return r
}

// linkKeys are the attributes of a port.
var linkKeys = scan.Keys[RDMALink]{
	"state":          func(l *RDMALink, v string) { scan.Keep(&l.State, scan.Str(v)) },
	"physical_state": func(l *RDMALink, v string) { scan.Keep(&l.PhysicalState, scan.Str(v)) },
	"netdev":         func(l *RDMALink, v string) { scan.Keep(&l.Netdev, scan.Str(v)) },
	"lid":            func(l *RDMALink, v string) { scan.Keep(&l.LID, scan.Int(v)) },
	"sm_lid":         func(l *RDMALink, v string) { scan.Keep(&l.SMLID, scan.Int(v)) },
	"lmc":            func(l *RDMALink, v string) { scan.Keep(&l.LMC, scan.Int(v)) },
	"subnet_prefix":  func(l *RDMALink, v string) { scan.Keep(&l.SubnetPrefix, scan.Str(v)) },
	"netdev_index":   func(*RDMALink, string) {},
}

// portName reads "mlx5_0/1" and "mlx5_0/1:", but not the index "0/1:".
func portName(w string) (device string, port *int64, ok bool) {
	device, number, found := strings.Cut(strings.TrimSuffix(w, ":"), "/")
	port = scan.Int(number)
	return device, port, found && port != nil && isDeviceName(device)
}

func isHead(w string) bool {
	if w == "link" {
		return true
	}
	a, b, ok := strings.Cut(strings.TrimSuffix(w, ":"), "/")
	return ok && scan.Int(a) != nil && (scan.Int(b) != nil || b == "-")
}

// json reads the line that rdma -j prints.
func (r *RDMALinkResult) json(line string) bool {
	var list []struct {
		Device string `json:"ifname"`
		RDMALink
	}
	if json.Unmarshal([]byte(line), &list) != nil {
		return false
	}
	for _, l := range list {
		if l.Device != "" && l.Port != nil {
			l.RDMALink.Device = l.Device
			r.Links = append(r.Links, l.RDMALink)
		}
	}
	return true
}
