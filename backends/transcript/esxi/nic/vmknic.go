package nic

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// VMKNICs is the table of "esxcfg-vmknic -l": one entry for each address, so a vmknic may occur more than once.
type VMKNICs struct {
	scan.Envelope
	VMKNICs []VMKNIC `json:"vmknics"`
}

// VMKNIC is one address of a vmknic.
type VMKNIC struct {
	Name      string  `json:"name"`
	Portgroup *string `json:"portgroup"` // name, or key of a DVPort or an opaque network
	Family    *string `json:"family"`    // IPv4 or IPv6
	IP        *string `json:"ip"`
	Netmask   *string `json:"netmask"` // IPv6: the prefix length
	Broadcast *string `json:"broadcast"`
	MAC       *string `json:"mac"`
	MTU       *int64  `json:"mtu"` // bytes
	TSOMSS    *int64  `json:"tso_mss"`
	Enabled   *bool   `json:"enabled"`
	Type      *string `json:"type"` // STATIC, DHCP; IPv6 also "STATIC, PREFERRED"
	NetStack  *string `json:"netstack"`
}

var (
	vmknicStart  = regexp.MustCompile(`\bvmk[0-9]+\s`)
	vmknicHead   = regexp.MustCompile(`^vmk[0-9]+(?:\s|$)`)
	vmknicFamily = regexp.MustCompile(`IPv[46](?:\s|$)`)
	// vmknicTail follows the MAC: MTU, TSO MSS, enabled, the rest.
	vmknicTail = regexp.MustCompile(`^\s*([0-9]+)\s+([0-9]+)\s+(\w+)\s*(.*)$`)
)

// VMKNICList reads "esxcfg-vmknic -l".
func VMKNICList(text string) VMKNICs {
	r := VMKNICs{VMKNICs: []VMKNIC{}}
	r.Envelope, text = scan.Begin("esxcfg_vmknic", text)
	text = scan.Unfold(text, vmknicStart)
	heading, narrow := false, false // narrow: the heading itself is wrapped, so the end of a row is on the next line
	begun := ""                     // a row that is wrapped
	open := false                   // the last row may continue
	for line := range scan.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if strings.HasPrefix(line, "Interface") && strings.Contains(line, "Port Group") {
			heading, narrow, open = true, !strings.Contains(line, "NetStack"), false
			continue
		}
		if words := strings.Fields(line); open && narrow && len(words) > 0 && len(words) <= 3 && !vmknicHead.MatchString(line) && !scan.IsGap(line) {
			open = r.VMKNICs[len(r.VMKNICs)-1].rest(words)
			continue
		}
		open = false
		joined := []string{line}
		switch {
		case vmknicHead.MatchString(line):
		case begun != "" && line != "" && len(begun) < 512:
			joined = []string{begun + " " + line, begun + line}
		default:
			begun = ""
			continue
		}
		begun = joined[0]
		for _, l := range joined {
			if v, ok := vmknic(l); ok {
				r.VMKNICs = append(r.VMKNICs, v)
				begun, open = "", v.NetStack == nil
				break
			}
		}
	}
	r.NotUnderstood(heading || len(r.VMKNICs) > 0, text)
	return r
}

// vmknic splits a row at its MAC and its family: the port group may contain blanks, and even be joined to the family.
func vmknic(line string) (VMKNIC, bool) {
	mac := macIn(line)
	if mac == nil {
		return VMKNIC{}, false
	}
	tail := vmknicTail.FindStringSubmatch(line[mac[1]:])
	name, left, _ := strings.Cut(strings.ReplaceAll(line[:mac[0]], "\t", " "), " ")
	family, addresses := familyOf(left)
	if tail == nil || family == nil {
		return VMKNIC{}, false
	}
	v := VMKNIC{
		Name: name, Portgroup: scan.Str(left[:family[0]]), Family: scan.Str(left[family[0]:family[1]]),
		MAC: scan.MAC(line[mac[0]:mac[1]]), MTU: scan.Int(tail[1]), TSOMSS: scan.Int(tail[2]), Enabled: scan.Bool(tail[3]),
	}
	for i, word := range addresses {
		switch i {
		case 0:
			v.IP = scan.Str(word)
		case 1:
			v.Netmask = scan.Str(word)
		case 2:
			v.Broadcast = scan.Str(word)
		}
	}
	v.rest(strings.Fields(tail[4]))
	return v, true
}

// rest reads the words after the truth value. The type is one word, or more while a comma follows; the rest is the stack. It
// reports whether the stack is still missing.
func (v *VMKNIC) rest(words []string) (open bool) {
	if v.Type != nil {
		words = append(strings.Fields(*v.Type), words...)
	}
	n := 0
	for n < len(words) && (n == 0 || strings.HasSuffix(words[n-1], ",")) {
		n++
	}
	v.Type = scan.Str(strings.Join(words[:n], " "))
	if n < len(words) {
		v.NetStack = scan.Str(words[n])
	}
	return v.NetStack == nil
}

// familyOf returns the family, and the words after it. A port group may be called "IPv4 storage": only a family followed by an
// address counts.
func familyOf(s string) (at []int, addresses []string) {
	for _, at := range vmknicFamily.FindAllStringIndex(s, 8) {
		words := strings.Fields(s[at[1]:])
		if len(words) == 0 || scan.IsNull(words[0]) || strings.ContainsAny(words[0], ":.") {
			return at, words
		}
	}
	return nil, nil
}
