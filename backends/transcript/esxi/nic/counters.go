package nic

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Stats is the record of "esxcli network nic stats get -n vmnicN": counters by their label in snake_case.
type Stats struct {
	scan.Envelope
	NIC   *string           `json:"nic"`
	Stats map[string]uint64 `json:"stats"`
}

var (
	statsHead = regexp.MustCompile(`(?i)^NIC statistics for\s+([^\s:]+):?`)
	counter   = regexp.MustCompile(`([A-Za-z][A-Za-z0-9 /()_-]*?)[ \t]*:[ \t]*([0-9]+)(?:[ \t]+|$)`)
)

// StatsOf reads "esxcli network nic stats get".
func StatsOf(text string) Stats {
	r := Stats{Stats: map[string]uint64{}}
	r.Envelope, text = scan.Begin("esxcli_network_nic_stats_get", text)
	understood := false
	for line := range scan.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if m := statsHead.FindStringSubmatch(line); m != nil {
			if r.NIC == nil {
				r.NIC = &m[1]
			}
			understood = true
			line = line[len(m[0]):]
		}
		if !strings.Contains(line, ":") {
			continue
		}
		for _, m := range counter.FindAllStringSubmatch(line, 256) {
			key := scan.Snake(m[1])
			value, err := strconv.ParseUint(m[2], 10, 64)
			if err != nil || key == "" {
				continue
			}
			if _, seen := r.Stats[key]; !seen {
				r.Stats[key] = value
			}
			understood = understood || strings.Contains(key, "packets") || strings.Contains(key, "bytes") || strings.Contains(key, "errors")
		}
	}
	if !understood {
		clear(r.Stats)
	}
	r.NotUnderstood(understood, text)
	return r
}

// Pauses is the table of "esxcli network nic pauseParams list".
type Pauses struct {
	scan.Envelope
	NICs []Pause `json:"nics"`
}

// Pause is the global pause setting of a pNIC and what the link partners agreed on.
type Pause struct {
	Name                       string `json:"name"`
	Supported                  *bool  `json:"supported"`
	PauseRX                    *bool  `json:"pause_rx"`
	PauseTX                    *bool  `json:"pause_tx"`
	AutoNegotiation            *bool  `json:"auto_negotiation"`
	AutonegResolutionAvailable *bool  `json:"autoneg_resolution_available"`
	RXAutonegResolution        *bool  `json:"rx_autoneg_resolution"`
	TXAutonegResolution        *bool  `json:"tx_autoneg_resolution"`
}

// PauseList reads "esxcli network nic pauseParams list".
func PauseList(text string) Pauses {
	r := Pauses{NICs: []Pause{}}
	r.Envelope, text = scan.Begin("esxcli_network_nic_pauseparams_list", text)
	text = scan.Unfold(text, nicStart)
	titles := []string{"NIC", "Pause Params Supported", "Pause RX", "Pause TX", "Auto Negotiation",
		"Auto Negotiation Resolution Avail", "RX Auto Negotiation Resolution", "TX Auto Negotiation Resolution"}
	usual := scan.NewHeader(strings.Join(titles, "  "), len(titles), titles...)
	printed, heading := usual, false
	begun := "" // a row that may be wrapped
	for line := range scan.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if strings.HasPrefix(line, "NIC") && strings.Contains(line, "Pause") {
			heading = true
			// A wrapped heading shows only some columns; then the rows have more, and the usual order is assumed.
			if h := scan.NewHeader(line, 3, titles...); h != nil {
				printed = h
			}
			continue
		}
		if printed.Rule(line) {
			continue
		}
		words := strings.Fields(line)
		if begun != "" && pauseRest(words) {
			line = begun + "  " + line
			words = strings.Fields(line)
			r.NICs = r.NICs[:len(r.NICs)-1]
		}
		if begun = ""; len(words) == 0 || !nicName.MatchString(words[0]) {
			continue
		}
		if len(words) < usual.Width() {
			begun = line
		}
		c := printed.Words(line)
		if len(words) == usual.Width() && printed.Width() < usual.Width() {
			c = usual.Words(line)
		}
		p := Pause{
			Name: words[0], Supported: scan.Bool(c.At(titles[1])), PauseRX: scan.Bool(c.At(titles[2])), PauseTX: scan.Bool(c.At(titles[3])),
			AutoNegotiation: scan.Bool(c.At(titles[4])), AutonegResolutionAvailable: scan.Bool(c.At(titles[5])),
			RXAutonegResolution: scan.Bool(c.At(titles[6])), TXAutonegResolution: scan.Bool(c.At(titles[7])),
		}
		r.NICs = append(r.NICs, p)
	}
	r.NotUnderstood(heading || len(r.NICs) > 0, text)
	return r
}

// pauseRest recognizes the rest of a wrapped row: only truth values.
func pauseRest(words []string) bool {
	for _, w := range words {
		if scan.Bool(w) == nil && !scan.IsNull(w) {
			return false
		}
	}
	return len(words) > 0
}

// VFs is the table of "esxcli network sriovnic vf list -n vmnicN".
type VFs struct {
	scan.Envelope
	VFs         []VF    `json:"vfs"`
	ActiveCount int     `json:"active_count"`
	PCINotation *string `json:"pci_notation"` // "hex" or "decimal", nil without rows
}

// VF is a virtual function. The owner is the world id of the VM, on newer releases its cartel id.
type VF struct {
	ID           int64   `json:"id"`
	Active       *bool   `json:"active"`
	PCIAddress   *string `json:"pci_address"`
	OwnerWorldID *int64  `json:"owner_world_id"`
}

// CodeNotSRIOV is the error of VFList for a NIC without virtual functions.
const CodeNotSRIOV = "not_sriov_nic"

var vfStart = regexp.MustCompile(`\b[0-9]+\s+(?:true|false)\s`)

var vfRow = regexp.MustCompile(`(?i)^([0-9]+)\s+(true|false|yes|no|enabled|disabled|n/a|-)?\s*((?:[0-9a-f]{4,8}:)?[0-9a-f]{2,3}:[0-9a-f]{2}[.:][0-9])(?:\s+(\S+))?`)

// VFList reads "esxcli network sriovnic vf list". Older releases print the parts of the PCI address in decimal, newer
// ones in hexadecimal. The width of the bus number decides: 00000:059:00.1 is 0000:3b:00.1, as in the VMX keys
// pciPassthruN.id (github.com/VirtQE-S1/ESX-LISA, setupscripts/tcutils.ps1).
func VFList(text string) VFs {
	r := VFs{VFs: []VF{}}
	r.Envelope, text = scan.Begin("esxcli_network_sriovnic_vf_list", text)
	text = scan.Unfold(text, vfStart)
	heading := false
	for line := range scan.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		m := vfRow.FindStringSubmatch(line)
		if m == nil {
			lower := strings.ToLower(line)
			switch {
			case strings.HasPrefix(lower, "vf id"):
				heading = true
			case strings.Contains(lower, "no sriov nic") || strings.Contains(lower, "no sr-iov nic"):
				r.Fail(CodeNotSRIOV, line, nil)
			}
			continue
		}
		id := scan.Int(m[1])
		if id == nil {
			continue
		}
		notation := "hex"
		vf := VF{ID: *id, Active: scan.Bool(m[2]), PCIAddress: scan.PCI(m[3]), OwnerWorldID: scan.Int(m[4])}
		if bus := strings.Split(m[3], ":"); len(bus[max(len(bus)-2, 0)]) == 3 {
			notation, vf.PCIAddress = "decimal", scan.DecimalPCI(m[3])
		}
		if r.PCINotation == nil {
			r.PCINotation = &notation
		}
		if vf.Active != nil && *vf.Active {
			r.ActiveCount++
		}
		r.VFs = append(r.VFs, vf)
	}
	r.NotUnderstood(heading || len(r.VFs) > 0, text)
	return r
}
