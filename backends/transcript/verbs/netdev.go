package verbs

import (
	"encoding/json"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// NetdevResult is the text of ibdev2netdev, plain or with -v.
type NetdevResult struct {
	scan.Envelope
	Links []NetdevLink `json:"links"`
}

// NetdevLink is one line: the network device of a port. The last six fields are nil without -v.
type NetdevLink struct {
	Device      string  `json:"device"`
	Port        *int64  `json:"port"`
	Netdev      *string `json:"netdev"`
	NetdevUp    *bool   `json:"netdev_up"`
	PCIAddress  *string `json:"pci_address"`
	PartID      *string `json:"part_id"`     // MT4117
	PartNumber  *string `json:"part_number"` // MCX515A-CCAT
	Description *string `json:"description"`
	FWVersion   *string `json:"fw_version"`
	PortState   *string `json:"port_state"` // ACTIVE, DOWN
}

// Netdev parses the text of ibdev2netdev. The arrow makes a line; a line without one continues on the next.
func Netdev(text string) NetdevResult {
	r := NetdevResult{Links: []NetdevLink{}}
	r.Envelope, text = scan.Begin("ibdev2netdev", text)
	pending := ""
	for line := range scan.Lines(text) {
		line = strings.TrimSpace(scan.ExpandTabs(line))
		if pending != "" && !startsLink(line) {
			line = pending + " " + line
		}
		for line != "" {
			link, rest, ok := readLink(line)
			if !ok {
				break
			}
			r.Links = append(r.Links, link)
			line = strings.TrimSpace(rest)
		}
		pending = ""
		if startsLink(line) && len(line) < 1024 {
			pending = line
		}
	}
	r.NotUnderstood(len(r.Links) > 0, text)
	return r
}

// startsLink reports whether a line begins as a link does: "0000:07:00.0 mlx5_0 (" or "mlx5_0 port 1".
func startsLink(line string) bool {
	words := strings.Fields(line[:min(len(line), 256)])
	if len(words) < 2 {
		return false
	}
	return scan.PCI(words[0]) != nil && isDeviceName(words[1]) || isDeviceName(words[0]) && (words[1] == "port" || strings.HasPrefix(words[1], "(MT"))
}

// readLink reads one link up to "(Up)" and returns what follows it.
func readLink(line string) (link NetdevLink, rest string, ok bool) {
	left, right, ok := cutArrow(line)
	if !ok {
		return link, "", false
	}
	inside, ok := scan.Between(right, "(", ")")
	if !ok || len(right) > 0 && strings.Contains(strings.SplitN(right, "(", 2)[0], "=>") {
		return link, "", false
	}
	name, behind, _ := strings.Cut(right, "(")
	_, rest, _ = strings.Cut(behind, ")")
	link.Netdev, link.NetdevUp = scan.Str(name), scan.Bool(inside)

	words := strings.Fields(left)
	for skip := 0; skip < 8 && len(words) > 2 && !startsLink(left); skip++ { // a command in front
		left = strings.TrimSpace(left[len(words[0]):])
		words = words[1:]
	}
	if len(words) > 0 {
		if pci := scan.PCI(words[0]); pci != nil {
			link.PCIAddress = pci
			left = strings.TrimSpace(left[len(words[0]):])
			words = words[1:]
		}
	}
	if len(words) < 3 || !isDeviceName(words[0]) {
		return link, "", false
	}
	link.Device = words[0]
	left = strings.TrimSpace(left[len(words[0]):])
	i := strings.LastIndex(" "+left, " port ")
	if i < 0 {
		return link, "", false
	}
	port := left[i+len("port "):]
	link.Port = scan.LeadingInt(port)
	if state, found := scan.Between(port, "(", ")"); found {
		link.PortState = scan.Str(state)
	}
	link.card(strings.TrimSpace(left[:i]))
	return link, rest, true
}

// cutArrow cuts at "==>", or the "<===>" of old scripts.
func cutArrow(line string) (left, right string, ok bool) {
	left, right, ok = strings.Cut(line, "=>")
	return strings.TrimRight(left, "<= "), strings.TrimSpace(right), ok
}

// card reads "(MT4115 - MT4090X05013) CX456A - ConnectX-4 QSFP fw 12.33.2410".
func (l *NetdevLink) card(s string) {
	if inside, ok := scan.Between(s, "(", ")"); ok && strings.HasPrefix(s, "(") {
		id, number, _ := strings.Cut(inside, " - ")
		l.PartID, l.PartNumber = scan.Str(id), scan.Str(number)
		_, s, _ = strings.Cut(s, ")")
	}
	s = " " + strings.TrimSpace(s)
	if i := strings.LastIndex(s, " fw "); i >= 0 {
		l.FWVersion = scan.Str(scan.Word(s[i+4:]))
		s = s[:i]
	}
	l.Description = scan.Str(s)
}

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
