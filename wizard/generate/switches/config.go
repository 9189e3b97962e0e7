// Package switches generates the configuration that a physical switch needs for RoCE v2: MTU, VLAN, priority flow control of one
// priority, ECN marking, ETS and the PFC watchdog. It does no I/O.
//
// The text cites a source for every line: the switch maker's manual if it is public, else a published configuration of the same
// system. Lines without a public source say so.
package switches

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// An OS is the operating system of a switch.
type OS string

// The switches of the guides, and two more.
const (
	Onyx    OS = "onyx"    // NVIDIA (Mellanox) Onyx, MLNX-OS
	Cumulus OS = "cumulus" // NVIDIA Cumulus Linux 5 with NVUE
	OS10    OS = "os10"    // Dell SmartFabric OS10
	EOS     OS = "eos"     // Arista EOS
)

// Systems are the names of all.
func Systems() []string { return []string{string(Onyx), string(Cumulus), string(OS10), string(EOS)} }

// SwitchMTU is the MTU of the ports in bytes: room for a 9000 byte host MTU with VLAN and tunnel headers.
const SwitchMTU = 9216

// CNP is the priority of congestion notification packets, which NICs mark with DSCP 48 by default; it is lossy and has strict
// priority.
const (
	CNP     = 6
	CNPDSCP = 48
)

// A Port is a port of the switch and its peer.
type Port struct {
	Name string // as returned by Name
	Peer string // "esx-01 vmnic2"
}

// A Wish is the requested configuration of a switch.
type Wish struct {
	OS       OS
	Switch   string // its name, for the heading
	Ports    []Port // none: unknown, and the text says what to add
	VLAN     int    // the port group's tag; 0: untagged, and the ports' VLANs stay as they are
	PFC      bool
	Priority int // of RoCE: 3
	DSCP     int // of RoCE: 26
	ECN      bool
	ECNMin   int    // KB in the queue at which marking begins: 150
	ECNMax   int    // KB at which every packet is marked: 1500
	Queue    string // EOS only: tx-queue, uc-tx-queue
}

// Check returns an error for settings that no switch supports.
func (w Wish) Check() error {
	switch {
	case !slices.Contains(Systems(), string(w.OS)):
		return fmt.Errorf("%q is not a supported switch system: %s", w.OS, strings.Join(Systems(), ", "))
	case w.VLAN < 0 || w.VLAN > 4094:
		return fmt.Errorf("VLAN %d is not between 0 and 4094", w.VLAN)
	case w.Priority < 1 || w.Priority > 5:
		return fmt.Errorf("priority %d cannot be RoCE's: 0 is everything else, 6 congestion notification, 7 network control", w.Priority)
	case w.OS == EOS && w.Priority == 1:
		return fmt.Errorf("priority 1 cannot be RoCE's on EOS: it is where unmarked traffic goes")
	case w.DSCP < 0 || w.DSCP > 63 || w.DSCP == CNPDSCP:
		return fmt.Errorf("DSCP %d cannot be RoCE's: it must lie between 0 and 63, and %d is congestion notification", w.DSCP, CNPDSCP)
	case w.ECN && (w.ECNMin < 1 || w.ECNMax < w.ECNMin || w.ECNMax > 65535):
		return fmt.Errorf("ECN thresholds %d to %d KB: the first must be at least 1 and not above the second, which ends at 65535", w.ECNMin,
			w.ECNMax)
	case w.OS == Onyx && w.DSCP/8 != w.Priority:
		return fmt.Errorf("DSCP %d falls into priority %d by the default map of Onyx, not %d; no other map could be verified for Onyx", w.DSCP,
			w.DSCP/8, w.Priority)
	case w.Queue != "" && w.Queue != "tx-queue" && w.Queue != "uc-tx-queue":
		return fmt.Errorf("queue %q: expected tx-queue or uc-tx-queue", w.Queue)
	}
	seen := map[string]bool{}
	for _, p := range w.Ports {
		if n, err := Name(w.OS, p.Name); err != nil || n != p.Name {
			return fmt.Errorf("port %q is not spelled as %s spells it", p.Name, w.OS)
		}
		if seen[p.Name] {
			return fmt.Errorf("port %s is named twice", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

// Config returns the configuration of one switch. Without ports every line is a comment, so that pasting it does nothing, and
// missing lists what must be filled in.
func Config(w Wish, o generate.Origin) (text string, missing []string, err error) {
	w.Queue = cmp.Or(w.Queue, "tx-queue")
	if err := w.Check(); err != nil {
		return "", nil, err
	}
	p := &page{mark: marks[w.OS]}
	if len(w.Ports) == 0 {
		missing = append(missing, "the ports that the hosts are on")
		w.Ports = []Port{{Name: placeholders[w.OS], Peer: "fill in, once for each port"}}
		p.idle = true
	}
	writers[w.OS](p, w)
	p.note("From the hosts: rdma-setup check -f answers.yaml --pairs ring   sends unfragmented pings, reads counters and measures.")
	if w.PFC {
		p.note("When it holds, say so in the answers:   confirmed: {switch_pfc: true}   for no tool can read it from the switch.")
	}
	name := cmp.Or(w.Switch, "the switch")
	head := o.Comment(p.mark)
	head += p.mark + " " +
		generate.Plain(fmt.Sprintf("RoCE v2 on %s: priority %d, DSCP %d, %s, MTU %d, %s.", name, w.Priority, w.DSCP, flow(w), mtu(w.OS),
			tag(w.VLAN))) + "\n"
	for _, port := range w.Ports {
		head += p.mark + " " + generate.Plain("Port "+port.Name+": "+port.Peer) + "\n"
	}
	if p.idle {
		head += p.mark + " NOT COMPLETE. Every line is a comment, so that a paste does nothing. Fill in: " +
			generate.Plain(strings.Join(missing, ", ")) + ".\n"
	}
	head += p.mark +
		" Read before you paste: MTU and PFC take the ports down and up for a moment. Keep a copy of the running configuration first.\n"
	return head + p.String(), missing, nil
}

// A writer writes the lines of one system.
type writer func(*page, Wish)

var (
	writers      = map[OS]writer{Onyx: onyx, Cumulus: cumulus, OS10: os10, EOS: eos}
	marks        = map[OS]string{Onyx: "##", Cumulus: "#", OS10: "!", EOS: "!"}
	placeholders = map[OS]string{Onyx: "1/PORT", Cumulus: "swpPORT", OS10: "ethernet1/1/PORT", EOS: "EthernetPORT"}
)

func flow(w Wish) string {
	s := "lossy"
	if w.PFC {
		s = "lossless by PFC"
	}
	if w.ECN {
		s += fmt.Sprintf(", ECN from %d to %d KB", w.ECNMin, w.ECNMax)
	}
	return s
}

func tag(vlan int) string {
	if vlan == 0 {
		return "untagged (the ports' VLANs stay as they are)"
	}
	return fmt.Sprintf("VLAN %d tagged", vlan)
}

// mtu returns the MTU of the ports: EOS does not count the Ethernet header and its maximum is 9214.
func mtu(os OS) int {
	if os == EOS {
		return SwitchMTU - 2
	}
	return SwitchMTU
}

// others returns priorities 0 to 7 without the given ones, as 0-2,4-5,7.
func others(not ...int) string {
	var parts []string
	for i := 0; i < 8; i++ {
		if slices.Contains(not, i) {
			continue
		}
		last := i
		for last < 7 && !slices.Contains(not, last+1) {
			last++
		}
		if last == i {
			parts = append(parts, fmt.Sprint(i))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", i, last))
		}
		i = last
	}
	return strings.Join(parts, ",")
}

// spellings describes how each system names its ports. The captured part is what its commands accept.
var spellings = map[OS]struct {
	form    *regexp.Regexp
	prefix  string
	example string
}{
	Onyx:    {regexp.MustCompile(`^(?i:eth(?:ernet)?[ ]?)?([0-9]{1,2}/[0-9]{1,3}(?:/[0-9])?)$`), "", "1/7, as LLDP tells it Eth1/7"},
	Cumulus: {regexp.MustCompile(`^(?i:swp)([0-9]{1,3}(?:s[0-7])?)$`), "swp", "swp7 or swp7s0"},
	OS10:    {regexp.MustCompile(`^(?i:eth(?:ernet)?[ ]?)([0-9]{1,2}/[0-9]{1,2}/[0-9]{1,3}(?::[0-9])?)$`), "ethernet", "ethernet1/1/7"},
	EOS:     {regexp.MustCompile(`^(?i:et(?:hernet)?[ ]?)([0-9]{1,3}(?:/[0-9]{1,3}){0,2})$`), "Ethernet", "Ethernet7 or Ethernet7/1"},
}

// Name converts a port name from the operator or LLDP to the form that a system's commands accept: Eth1/7 is 1/7 for Onyx.
// Anything but a port name is refused, so that no other text can get into a command.
func Name(os OS, port string) (string, error) {
	s, ok := spellings[os]
	if !ok {
		return "", fmt.Errorf("%q is not a supported switch system", os)
	}
	m := s.form.FindStringSubmatch(port)
	if m == nil {
		return "", fmt.Errorf("%q is not a port of %s: its ports are called like %s", port, os, s.example)
	}
	return s.prefix + m[1], nil
}

// A page collects the lines of a configuration and the sources that they cite.
type page struct {
	mark  string // prefix of a comment
	idle  bool   // every line is a comment
	b     strings.Builder
	cited []source
}

// A source is the document for a line.
type source struct {
	name, where string
	unverified  bool
}

// say begins a block with its purpose and the sources of its lines.
func (p *page) say(why string, from ...source) {
	var refs string
	for _, s := range from {
		i := slices.Index(p.cited, s)
		if i < 0 {
			p.cited = append(p.cited, s)
			i = len(p.cited) - 1
		}
		refs += fmt.Sprintf(" [%d]", i+1)
		if s.unverified {
			refs += " UNVERIFIED"
		}
	}
	p.b.WriteString(p.mark + "\n" + p.mark + " " + generate.Plain(why+refs) + "\n")
}

func (p *page) add(format string, args ...any) {
	if p.idle {
		p.b.WriteString(p.mark + " ")
	}
	fmt.Fprintf(&p.b, format+"\n", args...)
}

func (p *page) note(format string, args ...any) {
	p.b.WriteString(p.mark + " " + generate.Plain(fmt.Sprintf(format, args...)) + "\n")
}

// String returns the lines and, at the end, the sources.
func (p *page) String() string {
	var b strings.Builder
	b.WriteString(p.b.String() + p.mark + "\n" + p.mark + " Sources:\n")
	for i, s := range p.cited {
		b.WriteString(p.mark + " " + generate.Plain(strings.TrimSuffix(fmt.Sprintf("[%d] %s: %s", i+1, s.name, s.where), ": ")) + "\n")
	}
	return b.String()
}
