package transcript

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// IPAddrResult is the text of ip addr or ip link.
type IPAddrResult struct {
	scan.Envelope
	Interfaces []Interface `json:"interfaces"`
}

// Interface is one network device.
type Interface struct {
	Index     *int64      `json:"index"`
	Name      string      `json:"name"` // without @peer
	Flags     []string    `json:"flags"`
	MTU       *int64      `json:"mtu"`
	Qdisc     *string     `json:"qdisc"`
	Master    *string     `json:"master"`
	State     *string     `json:"state"`
	MAC       *string     `json:"mac"`
	Addresses []IPAddress `json:"addresses"`
	VFs       []VF        `json:"vfs"`
}

// IPAddress is one inet or inet6 line.
type IPAddress struct {
	Family    string  `json:"family"`
	Address   string  `json:"address"`
	PrefixLen *int64  `json:"prefix_len"`
	Scope     *string `json:"scope"`
	Dynamic   bool    `json:"dynamic"` // with a lifetime: from DHCP or a router's advertisement
}

// VF is one vf line of a physical function.
type VF struct {
	ID         *int64  `json:"id"`
	MAC        *string `json:"mac"`
	SpoofCheck *bool   `json:"spoof_check"`
	LinkState  *string `json:"link_state"` // auto, enable, disable
	Trust      *bool   `json:"trust"`
}

// IPAddr parses the text of ip addr and ip link. It works by words, not by lines: a record may be wrapped anywhere.
func IPAddr(text string) IPAddrResult {
	r := IPAddrResult{Interfaces: []Interface{}}
	r.Envelope, text = scan.Begin("ip_addr", text)
	var p ipParser
	for line := range scan.Lines(text) {
		for _, w := range strings.Fields(line) {
			p.word(w)
		}
	}
	p.word("") // the end ends the last pair
	p.flush()
	r.Interfaces = append(r.Interfaces, p.done...)
	r.NotUnderstood(len(r.Interfaces) > 0, text)
	return r
}

type ipParser struct {
	done   []Interface
	open   *Interface
	vf     *VF
	addr   *IPAddress
	before [2]string // the two words before
}

func (p *ipParser) flush() {
	if p.open != nil {
		p.done = append(p.done, *p.open)
	}
	p.open, p.vf, p.addr = nil, nil, nil
}

// word handles the next word, whose meaning depends on the previous one.
func (p *ipParser) word(w string) {
	key, prior := p.before[1], p.before[0]
	p.before = [2]string{key, w}
	if name, ok := interfaceName(key); ok && strings.HasPrefix(w, "<") && strings.HasSuffix(prior, ":") {
		if index := scan.Int(strings.TrimSuffix(prior, ":")); index != nil {
			p.flush()
			p.open = &Interface{Index: index, Name: name, Addresses: []IPAddress{}, VFs: []VF{}, Flags: []string{}}
			if flags := strings.Trim(w, "<>"); flags != "" {
				p.open.Flags = strings.Split(flags, ",")
			}
			return
		}
	}
	if p.open == nil {
		return
	}
	w = strings.TrimRight(w, ",")
	switch {
	case key == "vf" && scan.Int(w) != nil:
		p.open.VFs = append(p.open.VFs, VF{ID: scan.Int(w)})
		p.vf = &p.open.VFs[len(p.open.VFs)-1]
	case (key == "inet" || key == "inet6") && p.address(key, w):
	case p.vf != nil:
		p.vfWord(prior, key, w)
	case p.addr != nil && (key == "scope" || key == "peer"):
		p.addressWord(key, w)
	case p.addr != nil && w == "dynamic":
		p.addr.Dynamic = true
	default:
		p.open.set(key, w)
	}
}

// interfaceName reads "ens3f0:" and "ens3f0@if4:".
func interfaceName(w string) (string, bool) {
	name, ok := strings.CutSuffix(w, ":")
	name, _, _ = strings.Cut(name, "@")
	return name, ok && name != ""
}

func (p *ipParser) address(family, w string) bool {
	address, prefix, _ := strings.Cut(w, "/")
	if !strings.ContainsAny(address, ".:") {
		return false
	}
	p.open.Addresses = append(p.open.Addresses, IPAddress{Family: family, Address: address, PrefixLen: scan.Int(prefix)})
	p.addr, p.vf = &p.open.Addresses[len(p.open.Addresses)-1], nil
	return true
}

func (p *ipParser) addressWord(key, w string) {
	if key == "scope" {
		scan.Keep(&p.addr.Scope, scan.Str(w))
		return
	}
	if _, prefix, ok := strings.Cut(w, "/"); ok {
		scan.Keep(&p.addr.PrefixLen, scan.Int(prefix))
	}
}

func (p *ipParser) vfWord(prior, key, w string) {
	switch {
	case strings.HasPrefix(key, "link/") || key == "MAC":
		scan.Keep(&p.vf.MAC, scan.MAC(w))
	case prior == "spoof" && key == "checking":
		scan.Keep(&p.vf.SpoofCheck, scan.Bool(w))
	case key == "link-state":
		scan.Keep(&p.vf.LinkState, scan.Str(w))
	case key == "trust":
		scan.Keep(&p.vf.Trust, scan.Bool(w))
	}
}

func (i *Interface) set(key, w string) {
	switch {
	case key == "mtu":
		scan.Keep(&i.MTU, scan.Int(w))
	case key == "qdisc":
		scan.Keep(&i.Qdisc, scan.Str(w))
	case key == "master":
		scan.Keep(&i.Master, scan.Str(w))
	case key == "state":
		scan.Keep(&i.State, scan.Str(w))
	case strings.HasPrefix(key, "link/") && key != "link/infiniband":
		scan.Keep(&i.MAC, scan.MAC(w))
	}
}
