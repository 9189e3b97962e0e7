package nic

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Details is the record of "esxcli network nic get -n vmnicN".
type Details struct {
	scan.Envelope
	Name                *string  `json:"name"`
	Driver              *string  `json:"driver"`
	DriverVersion       *string  `json:"driver_version"`
	FirmwareVersion     *string  `json:"firmware_version"`
	PCIAddress          *string  `json:"pci_address"`
	LinkUp              *bool    `json:"link_up"`
	LinkDetected        *bool    `json:"link_detected"`
	AutoNegotiation     *bool    `json:"auto_negotiation"`
	AdvertisedLinkModes []string `json:"advertised_link_modes"`
	CableType           *string  `json:"cable_type"`
	PauseRX             *bool    `json:"pause_rx"`
	PauseTX             *bool    `json:"pause_tx"`
	PauseAutonegotiate  *bool    `json:"pause_autonegotiate"`
	SupportsPause       *bool    `json:"supports_pause"`
	SupportsWakeon      *bool    `json:"supports_wakeon"`
	Wakeon              *string  `json:"wakeon"`
	VirtualAddress      *string  `json:"virtual_address"` // a MAC
	Transceiver         *string  `json:"transceiver"`
}

// Get reads "esxcli network nic get".
func Get(text string) Details {
	var d Details
	d.Envelope, text = scan.Begin("esxcli_network_nic_get", text)
	f := scan.Named("Advertised Auto Negotiation", "Advertised Link Modes", "Auto Negotiation", "Backing DPUId",
		"Cable Type", "Current Message Level", "Driver Info", "Bus Info", "Driver", "Firmware Version", "Version",
		"Link Detected", "Link Status", "Name", "PHYAddress", "Pause Autonegotiate", "Pause RX", "Pause TX", "Supported Ports",
		"Supports Auto Negotiation", "Supports Pause", "Supports Wakeon", "Transceiver", "Virtual Address", "Wakeon",
	).Records(text, scan.Opening{})[0]
	d.Name, d.Driver, d.DriverVersion = f.Str("Name"), f.Str("Driver"), f.Str("Version")
	d.FirmwareVersion, d.PCIAddress = f.Str("Firmware Version"), scan.PCI(f.Value("Bus Info"))
	d.LinkUp, d.LinkDetected, d.AutoNegotiation = scan.Bool(scan.Word(f.Value("Link Status"))), f.Bool("Link Detected"), f.Bool("Auto Negotiation")
	d.AdvertisedLinkModes, d.CableType = []string{}, f.Str("Cable Type")
	for mode := range strings.SplitSeq(f.Value("Advertised Link Modes"), ",") {
		if mode := scan.Str(mode); mode != nil {
			d.AdvertisedLinkModes = append(d.AdvertisedLinkModes, *mode)
		}
	}
	d.PauseRX, d.PauseTX, d.PauseAutonegotiate = f.Bool("Pause RX"), f.Bool("Pause TX"), f.Bool("Pause Autonegotiate")
	d.SupportsPause, d.SupportsWakeon = f.Bool("Supports Pause"), f.Bool("Supports Wakeon")
	if w := f.Str("Wakeon"); w != nil && !strings.EqualFold(*w, "None") {
		d.Wakeon = w
	}
	d.VirtualAddress, d.Transceiver = scan.MAC(f.Value("Virtual Address")), f.Str("Transceiver")
	// Name and Version by themselves occur in the output of many tools.
	understood := f.Len() - count(f.Has("Name"), f.Has("Version"), f.Has("Driver"))
	d.NotUnderstood(understood > 0, text)
	return d
}

func count(all ...bool) int {
	n := 0
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

// wrappedTitles is the end of a heading that the terminal wrapped.
var wrappedTitles = regexp.MustCompile(`^(?:(?:(?:(?:Duplex\s+)?MAC\s+)?Address\s+)?MTU\s+)?Description$|^(?:(?:MAC\s+)?Address\s+)?MTU$`)

// wrapped collects the lines after the rows of a table. They may be the rest of the descriptions, or noise: only the complete table
// shows which.
type wrapped struct {
	sure  bool // the heading is wrapped too
	tails map[int][]string
}

// add records a line after the row with that index.
func (w *wrapped) add(row int, line string) {
	if w.tails == nil {
		w.tails = map[int][]string{}
	}
	if len(w.tails[row]) < 4 {
		w.tails[row] = append(w.tails[row], strings.TrimSpace(line))
	}
}

// give appends the tails to the descriptions if the heading or at least half of several rows is wrapped. The last row can have at
// most as many tail lines as another row.
func (w *wrapped) give(rows int, description func(row int) **string) {
	if !w.sure && (len(w.tails) < 2 || 2*len(w.tails) < rows) {
		return
	}
	last, most := rows-1, 1
	for row, tail := range w.tails {
		if row != last {
			most = max(most, len(tail))
		}
	}
	for row, tail := range w.tails {
		to := description(row)
		text := strings.Join(tail[:min(most, len(tail))], " ")
		if *to != nil {
			text = **to + " " + text
		}
		*to = &text
	}
}

// Tools returns the parsers of this package by tool id.
func Tools() map[string]func(string) any {
	return map[string]func(string) any{
		"esxcfg_nics":                         func(s string) any { return CfgList(s) },
		"esxcfg_vmknic":                       func(s string) any { return VMKNICList(s) },
		"esxcli_network_nic_get":              func(s string) any { return Get(s) },
		"esxcli_network_nic_list":             func(s string) any { return List(s) },
		"esxcli_network_nic_pauseparams_list": func(s string) any { return PauseList(s) },
		"esxcli_network_nic_stats_get":        func(s string) any { return StatsOf(s) },
		"esxcli_network_sriovnic_list":        func(s string) any { return SRIOVList(s) },
		"esxcli_network_sriovnic_vf_list":     func(s string) any { return VFList(s) },
		"esxcli_rdma_device_list":             func(s string) any { return RDMAList(s) },
		"esxcli_rdma_device_protocol_list":    func(s string) any { return ProtocolList(s) },
		"esxcli_rdma_device_vmknic_list":      func(s string) any { return BindingList(s) },
	}
}
