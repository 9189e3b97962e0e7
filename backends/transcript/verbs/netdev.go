package verbs

import (
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
