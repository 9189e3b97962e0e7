package answers

import (
	"cmp"
	"fmt"
	"math/bits"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Speed is a link speed in Mbps, written 100G or 2500M; 0 is "any" and written "".
type Speed int

// Mbps returns the speed in vSphere's unit.
func (s Speed) Mbps() int { return int(s) }

func (s Speed) String() string {
	switch {
	case s <= 0:
		return ""
	case s%1000 == 0:
		return fmt.Sprintf("%dG", int(s)/1000)
	}
	return fmt.Sprintf("%dM", int(s))
}

// MarshalText writes what String prints.
func (s Speed) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

var speedText = regexp.MustCompile(`^(?i)([0-9]{1,7})(?:\.([0-9]))?\s*([gm])(?:b|bit|bps|bit/s|b/s|be)?$`)

// UnmarshalText parses 100G, 100Gbps, 100GbE, 2.5G or 2500M.
func (s *Speed) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	if text == "" {
		*s = 0
		return nil
	}
	m := speedText.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%q is not a link speed", clip(text))
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return err
	}
	tenth := 0
	if m[2] != "" {
		tenth = int(m[2][0] - '0')
	}
	if strings.EqualFold(m[3], "m") {
		if tenth != 0 {
			return fmt.Errorf("%q is not a link speed", clip(text))
		}
		*s = Speed(n)
	} else {
		*s = Speed(n*1000 + tenth*100)
	}
	if *s <= 0 || *s > 3_200_000 {
		return fmt.Errorf("%q is not a link speed", clip(text))
	}
	return nil
}

// A MAC is an Ethernet address, lower case with colons.
type MAC string

// UnmarshalText parses any usual spelling of six bytes.
func (m *MAC) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	hw, err := net.ParseMAC(text)
	if err != nil || len(hw) != 6 {
		return fmt.Errorf("%q is not a MAC address", clip(text))
	}
	*m = MAC(hw.String())
	return nil
}

func (m MAC) valid() bool {
	hw, err := net.ParseMAC(string(m))
	return err == nil && len(hw) == 6 && hw.String() == string(m)
}

// A PCI is the address of a PCI function, hexadecimal: 0000:3b:00.0.
type PCI string

var pciText = regexp.MustCompile(`^(?i)(?:([0-9a-f]{4}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$`)

// UnmarshalText parses the address with or without its segment.
func (p *PCI) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	m := pciText.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%q is not a PCI address", clip(text))
	}
	m[1] = cmp.Or(m[1], "0000")
	*p = PCI(strings.ToLower(m[1] + ":" + m[2] + ":" + m[3] + "." + m[4]))
	return nil
}

// A Node is the number of a NUMA node; "" is any.
type Node string

// UnmarshalText parses a number, or nothing.
func (n *Node) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	if v, err := strconv.Atoi(text); text != "" && (err != nil || v < 0 || v > 255) {
		return fmt.Errorf("%q is not a NUMA node", clip(text))
	}
	*n = Node(text)
	return nil
}

// A Duration is written in Go's syntax, without zero parts: 30m.
type Duration time.Duration

func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes what String prints.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses 30m, 1h30m or 90s.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("%q is not a duration", clip(string(b)))
	}
	*d = Duration(v)
	return nil
}

// An MMIO says how to compute pciPassthru.64bitMMIOSizeGB: kb, minimal, guide, or a number of GB.
type MMIO string

// GB returns the size if the operator set one, 0 otherwise.
func (m MMIO) GB() int {
	n, err := strconv.Atoi(string(m))
	if err != nil {
		return 0
	}
	return n
}

// UnmarshalText parses kb, minimal, guide or a power of two.
func (m *MMIO) UnmarshalText(b []byte) error {
	text := strings.ToLower(strings.TrimSpace(string(b)))
	switch text {
	case "kb", "minimal", "guide":
		*m = MMIO(text)
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || bits.OnesCount64(n) != 1 {
		return fmt.Errorf("%q is neither kb, minimal, guide nor a power of two", clip(text))
	}
	*m = MMIO(strconv.FormatUint(n, 10))
	return nil
}

// A VMCount is a number of VMs; 0 is the default, AllVMs means no limit.
type VMCount int

// AllVMs is the value "all".
const AllVMs VMCount = -1

// UnmarshalText parses a number or all.
func (c *VMCount) UnmarshalText(b []byte) error {
	text := strings.ToLower(strings.TrimSpace(string(b)))
	switch text {
	case "":
		*c = 0
		return nil
	case "all":
		*c = AllVMs
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 100_000 {
		return fmt.Errorf("%q is neither a number of VMs nor all", clip(text))
	}
	*c = VMCount(n)
	return nil
}

// MarshalText writes the number or all, and nothing for the default.
func (c VMCount) MarshalText() ([]byte, error) {
	switch {
	case c == AllVMs:
		return []byte("all"), nil
	case c <= 0:
		return nil, nil
	}
	return []byte(strconv.Itoa(int(c))), nil
}

// Hardware is the requested virtual hardware version of a VM: keep (also ""), upgrade (to the lowest version that the
// mode needs) or a number (14 for vmx-14).
type Hardware string

// The keywords of vms[].hardware.
const (
	HardwareKeep    Hardware = "keep"
	HardwareUpgrade Hardware = "upgrade"
)

// Version returns the number, 0 for the keywords.
func (h Hardware) Version() int {
	n, err := strconv.Atoi(string(h))
	if err != nil {
		return 0
	}
	return n
}

// From returns the new version of a VM, given its current version and the one it needs.
func (h Hardware) From(has, needs int) int {
	switch h {
	case HardwareKeep, "":
		return has
	case HardwareUpgrade:
		return max(has, needs)
	}
	return h.Version()
}

// UnmarshalText parses keep, upgrade, 14 or vmx-14.
func (h *Hardware) UnmarshalText(b []byte) error {
	text := strings.ToLower(strings.TrimSpace(string(b)))
	switch text {
	case "", "keep", "upgrade":
		*h = Hardware(text)
		return nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(text, "vmx-"))
	if err != nil || n < 4 || n > 99 {
		return fmt.Errorf("%q is neither keep, upgrade nor a hardware version", clip(text))
	}
	*h = Hardware(strconv.Itoa(n))
	return nil
}

// Trust says whether a VM's users are trusted with a VF: trusted (also ""), or untrusted.
type Trust string

// The values of vms[].trust.
const (
	Trusted   Trust = "trusted"
	Untrusted Trust = "untrusted"
)

// A ClockTime is a time of day, 05:00; "" means none.
type ClockTime string

const clockLayout = "15:04"

// UnmarshalText parses 05:00 or 5:00.
func (c *ClockTime) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	if text == "" {
		*c = ""
		return nil
	}
	t, err := time.Parse(clockLayout, text)
	if err != nil {
		return fmt.Errorf("%q is not a time of day", clip(text))
	}
	*c = ClockTime(t.Format(clockLayout))
	return nil
}

func clip(s string) string { return backends.Shorten(s, 60) }

// Gbps is a bandwidth in Gb/s, written as a plain number; 0 means not set.
type Gbps float64

// mostGbps is more than any port supports.
const mostGbps = 10_000

// Mbps returns the bandwidth in Mb/s.
func (g Gbps) Mbps() int { return int(float64(g)*1000 + 0.5) }

// MarshalText writes the number, "" for 0.
func (g Gbps) MarshalText() ([]byte, error) {
	if g == 0 {
		return nil, nil
	}
	return []byte(strconv.FormatFloat(float64(g), 'f', -1, 64)), nil
}

// UnmarshalText parses the output of MarshalText.
func (g *Gbps) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*g = 0
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(v >= 0.001 && v <= mostGbps) {
		return fmt.Errorf("%q is not a bandwidth in Gb/s", b)
	}
	*g = Gbps(v)
	return nil
}
