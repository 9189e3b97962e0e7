package perflog

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// fields parses "key : value" pairs; a line may contain several, and the JSON of --out_json is parsed as such pairs too.
func (p *parser) fields(line string) {
	key, rest, ok := strings.Cut(line, ":")
	if !ok || p.side != nil && strings.Contains(line, " address:") {
		return
	}
	for ok {
		var next string
		next, rest, ok = strings.Cut(rest, ":")
		next = strings.TrimLeft(next, " \t")
		end := strings.IndexAny(next, " \t,")
		if end < 0 {
			end = len(next)
		}
		value := strings.Trim(next[:end], "\"',")
		if key = fieldKey(key); key != "" {
			p.field(key, value)
		}
		key = strings.TrimLeft(next[end:], " \t,")
	}
}

// fieldKey is scan.Key without the marks of JSON.
func fieldKey(s string) string {
	s = strings.Trim(s, " \t\"'{}[],")
	if i := strings.LastIndexAny(s, "{,\""); i >= 0 {
		s = s[i+1:]
	}
	if len(s) > 100 {
		s = s[len(s)-100:]
	}
	return scan.Key(s)
}

func (p *parser) field(key, value string) {
	h := &p.header
	for {
		if p.known(h, key, value) {
			return
		}
		var ok bool
		if _, key, ok = strings.Cut(key, " "); !ok {
			return
		}
	}
}

// known sets the field of that name and reports whether there is one.
func (p *parser) known(h *Header, key, value string) bool {
	if headerKeys.Set(h, key, value) {
		p.understood = true
		return true
	}
	return p.table.result(key, value)
}

// headerKeys are the fields of the header.
var headerKeys = scan.Keys[Header]{
	"device":            func(h *Header, v string) { scan.Keep(&h.Device, scan.Str(v)) },
	"dual port":         func(h *Header, v string) { scan.Keep(&h.DualPort, scan.Bool(v)) },
	"number of qps":     func(h *Header, v string) { scan.Keep(&h.NumQPs, scan.LeadingInt(v)) },
	"transport type":    func(h *Header, v string) { scan.Keep(&h.Transport, scan.Str(v)) },
	"connection type":   func(h *Header, v string) { scan.Keep(&h.Connection, scan.Str(v)) },
	"using srq":         func(h *Header, v string) { scan.Keep(&h.UsingSRQ, scan.Bool(v)) },
	"pcie relax order":  func(h *Header, v string) { scan.Keep(&h.PCIeRelaxedOrder, scan.Bool(v)) },
	"ibv wr* api":       func(h *Header, v string) { scan.Keep(&h.IbvWrAPI, scan.Bool(v)) },
	"ibv wr api":        func(h *Header, v string) { scan.Keep(&h.IbvWrAPI, scan.Bool(v)) },
	"tx depth":          func(h *Header, v string) { scan.Keep(&h.TxDepth, scan.LeadingInt(v)) },
	"rx depth":          func(h *Header, v string) { scan.Keep(&h.RxDepth, scan.LeadingInt(v)) },
	"post list":         func(h *Header, v string) { scan.Keep(&h.PostList, scan.LeadingInt(v)) },
	"cq moderation":     func(h *Header, v string) { scan.Keep(&h.CQModeration, scan.LeadingInt(v)) },
	"mtu":               func(h *Header, v string) { scan.Keep(&h.MTU, scan.LeadingInt(v)) },
	"link type":         func(h *Header, v string) { scan.Keep(&h.LinkLayer, scan.Str(v)) },
	"gid index":         func(h *Header, v string) { scan.Keep(&h.GIDIndex, scan.LeadingInt(v)) },
	"max inline data":   func(h *Header, v string) { scan.Keep(&h.MaxInlineDataBytes, scan.LeadingInt(v)) },
	"outstand reads":    func(h *Header, v string) { scan.Keep(&h.OutstandingReads, scan.LeadingInt(v)) },
	"outstanding reads": func(h *Header, v string) { scan.Keep(&h.OutstandingReads, scan.LeadingInt(v)) },
	"rdma cm qps":       func(h *Header, v string) { scan.Keep(&h.RDMACM, scan.Bool(v)) },
	"data ex. method":   func(h *Header, v string) { scan.Keep(&h.DataExchange, scan.Str(v)) },
	"data ex method":    func(h *Header, v string) { scan.Keep(&h.DataExchange, scan.Str(v)) },
}

// address reads "local address: LID 0x01 QPN 0x0033 PSN 0x2f" and the parts of it on a wrapped line.
func (p *parser) address(line, lower string) {
	if before, _, found := strings.Cut(lower, " address:"); found {
		switch {
		case strings.HasSuffix(before, "local"):
			p.side = &p.header.Local
		case strings.HasSuffix(before, "remote"):
			p.side = &p.header.Remote
		default:
			return
		}
		p.understood = true
		*p.side = append(*p.side, Address{})
		p.parts(line[len(before)+len(" address:"):])
	} else if p.side != nil && (strings.HasPrefix(line, "QPN ") || strings.HasPrefix(line, "PSN ") || strings.HasPrefix(line, "LID ")) {
		p.parts(line)
	}
}

func (p *parser) parts(s string) {
	last := &(*p.side)[len(*p.side)-1]
	words := strings.Fields(s)
	for i := 0; i+1 < len(words); i++ {
		value := strings.TrimRight(words[i+1], ",;")
		switch strings.ToUpper(words[i]) {
		case "LID":
			scan.Keep(&last.LID, scan.Int(value))
		case "QPN":
			scan.Keep(&last.QPN, scan.Int(value))
		case "PSN":
			scan.Keep(&last.PSN, scan.Int(value))
		}
	}
}

// gid reads the decimal bytes of a GID for the previous address; the line may be wrapped after a colon.
func (p *parser) gid(line string) bool {
	if p.gidOpen != "" {
		if c := line[0]; c >= '0' && c <= '9' {
			line, p.gidOpen = p.gidOpen+line, ""
		}
	}
	upper := strings.TrimPrefix(line, "M")
	if !strings.HasPrefix(upper, "GID:") && !strings.HasPrefix(upper, "GID :") || len(line) > 200 {
		p.gidOpen = ""
		return false
	}
	_, bytes, _ := strings.Cut(upper, ":")
	parts := strings.Split(strings.TrimSpace(bytes), ":")
	if n := len(parts); n < 16 && parts[n-1] == "" && p.gidOpen == "" {
		p.gidOpen = line
		return true
	}
	p.gidOpen = ""
	if p.side == nil || len(*p.side) == 0 {
		return true
	}
	last := &(*p.side)[len(*p.side)-1]
	last.gid(parts)
	if n := len(parts); n >= 6 && n <= 16 && parts[n-6] == "255" && parts[n-5] == "255" {
		if f := strings.Fields(parts[n-1]); len(f) > 0 {
			parts[n-1] = f[0]
		}
		scan.Keep(&last.GIDIPv4, scan.IPv4(strings.Join(parts[n-4:], ".")))
	}
	return true
}

// gid keeps the GID if all of its decimal bytes are there.
func (a *Address) gid(parts []string) {
	if len(parts) != 16 || a.GID.IsValid() {
		return
	}
	var raw [16]byte
	for i, part := range parts {
		word, _, _ := strings.Cut(part, " ")
		b, err := strconv.ParseUint(word, 10, 8)
		if err != nil {
			return
		}
		raw[i] = byte(b)
	}
	a.GID = netip.AddrFrom16(raw)
}
