package nic

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// RDMADevices is the table of "esxcli rdma device list".
type RDMADevices struct {
	scan.Envelope
	Devices []RDMADevice `json:"devices"`
}

// RDMADevice is a vmrdma device.
type RDMADevice struct {
	Name        string   `json:"name"`
	Driver      *string  `json:"driver"`
	State       *string  `json:"state"` // Active, Down, ...
	MTU         *int64   `json:"mtu"`   // bytes
	SpeedGbps   *float64 `json:"speed_gbps"`
	Uplink      *string  `json:"uplink"` // the paired vmnic
	Description *string  `json:"description"`
}

// RDMAList reads "esxcli rdma device list".
func RDMAList(text string) RDMADevices {
	r := RDMADevices{Devices: []RDMADevice{}}
	r.Envelope, text = scan.Begin("esxcli_rdma_device_list", text)
	var more wrapped
	heading := eachDevice(text, "Paired Uplink", func(line string) {
		if d, ok := rdmaDevice(line); ok {
			r.Devices = append(r.Devices, d)
		}
	}, func(line string) {
		if len(r.Devices) > 0 {
			more.add(len(r.Devices)-1, line)
		}
	})
	more.give(len(r.Devices), func(row int) **string { return &r.Devices[row].Description })
	r.NotUnderstood(heading || len(r.Devices) > 0, text)
	return r
}

var (
	rdmaStart = regexp.MustCompile(`\bvmrdma[0-9]+\s`)
	rdmaName  = regexp.MustCompile(`^vmrdma[0-9]+$`)
	rdmaState = regexp.MustCompile(`(?i)^(?:active|inactive|down|up|disabled|init|initializing|armed|defer|nop|unknown)$`)
	// rdmaSpeed matches "100 Gbps", "100Gbps", "40000 Mbps" and a bare number.
	rdmaSpeed = regexp.MustCompile(`(?i)^([0-9.]+)\s*(?:([GM])b(?:ps|it/s|/s))?(?:\s+|$)`)
	// onlySpeed is a speed after an empty MTU: it has a unit, or is smaller than any MTU and no speed follows.
	onlySpeed = regexp.MustCompile(`(?i)^[0-9.]+\s*[GM]b(?:ps|it/s|/s)|^[0-9]{1,2}(?:\s+[^0-9\s]|\s*$)`)
)

// eachDevice calls row for every line that begins with a vmrdma device, and rest, if set, for lines directly after one. It
// reports whether the heading was found.
func eachDevice(text, title string, row, rest func(line string)) (heading bool) {
	behind := false
	for line := range scan.Lines(scan.Unfold(text, rdmaStart)) {
		line = strings.TrimLeft(line, " \t")
		first, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		switch {
		case rdmaName.MatchString(first):
			row(line)
			behind = true
		case strings.Contains(line, title) && !strings.Contains(line, ":"):
			heading, behind = true, false
		case line == "" || scan.IsGap(line) || scan.IsRule(line):
			behind = false
		case behind && rest != nil:
			rest(line)
		}
	}
	return heading
}

func rdmaDevice(line string) (RDMADevice, bool) {
	rest := strings.ReplaceAll(line, "\t", "  ")
	next := func() string {
		var word string
		rest = strings.TrimLeft(rest, " ")
		word, rest, _ = strings.Cut(rest, " ")
		rest = strings.TrimLeft(rest, " ")
		return word
	}
	d := RDMADevice{Name: next()}
	word := next()
	if !rdmaState.MatchString(word) || rdmaState.MatchString(strings.SplitN(rest+" ", " ", 2)[0]) {
		d.Driver, word = scan.Str(word), next()
	}
	d.State = scan.Str(word)
	if word == "" {
		return d, false
	}
	if mtu := strings.SplitN(rest+" ", " ", 2)[0]; (scan.Int(mtu) != nil || scan.IsNull(mtu) && mtu != "") && !onlySpeed.MatchString(rest) {
		d.MTU = scan.Int(next())
	}
	if m := rdmaSpeed.FindStringSubmatch(rest); m != nil {
		rest = rest[len(m[0]):]
		if d.SpeedGbps = scan.Float(m[1]); d.SpeedGbps != nil && strings.EqualFold(m[2], "M") {
			*d.SpeedGbps /= 1000
		}
	} else if first := strings.SplitN(rest+" ", " ", 2)[0]; first != "" && (scan.IsNull(first) || strings.EqualFold(first, "unknown")) {
		next()
	}
	if first := strings.SplitN(rest+" ", " ", 2)[0]; nicName.MatchString(first) || first != "" && scan.IsNull(first) {
		d.Uplink = scan.Str(next())
	}
	d.Description = scan.Str(rest)
	return d, true
}

// Protocols is the table of "esxcli rdma device protocol list".
type Protocols struct {
	scan.Envelope
	Devices []Protocol `json:"devices"`
}

// Protocol is the protocol of a vmrdma device.
type Protocol struct {
	Name   string `json:"name"`
	RoCEv1 *bool  `json:"roce_v1"`
	RoCEv2 *bool  `json:"roce_v2"`
	IWARP  *bool  `json:"iwarp"`
}

// ProtocolList reads "esxcli rdma device protocol list".
func ProtocolList(text string) Protocols {
	r := Protocols{Devices: []Protocol{}}
	r.Envelope, text = scan.Begin("esxcli_rdma_device_protocol_list", text)
	text = scan.Unfold(text, rdmaStart)
	titles := []string{"Device", "RoCE v1", "RoCE v2", "iWARP"}
	header := scan.NewHeader(strings.Join(titles, "  "), len(titles), titles...)
	heading := false
	for line := range scan.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if strings.Contains(line, "RoCE") && strings.HasPrefix(line, "Device") {
			if h := scan.NewHeader(line, 2, titles...); h != nil {
				header, heading = h, true
			}
			continue
		}
		if !strings.HasPrefix(line, "vmrdma") {
			header.Rule(line)
			continue
		}
		if c := header.Words(line); rdmaName.MatchString(c.At("Device")) {
			r.Devices = append(r.Devices, Protocol{
				Name: c.At("Device"), RoCEv1: scan.Bool(c.At("RoCE v1")), RoCEv2: scan.Bool(c.At("RoCE v2")), IWARP: scan.Bool(c.At("iWARP")),
			})
		}
	}
	r.NotUnderstood(heading || len(r.Devices) > 0, text)
	return r
}

// Bindings is the table of "esxcli rdma device vmknic list".
type Bindings struct {
	scan.Envelope
	Bindings []Binding `json:"bindings"`
}

// Binding ties a vmrdma device to the vmknic whose address it uses.
type Binding struct {
	Device   string  `json:"device"`
	VMKNIC   *string `json:"vmknic"`
	NetStack *string `json:"netstack"`
}

// BindingList reads "esxcli rdma device vmknic list".
func BindingList(text string) Bindings {
	r := Bindings{Bindings: []Binding{}}
	r.Envelope, text = scan.Begin("esxcli_rdma_device_vmknic_list", text)
	heading := eachDevice(text, "NetStack", func(line string) {
		b := Binding{}
		for i, word := range strings.Fields(line) {
			switch i {
			case 0:
				b.Device = word
			case 1:
				b.VMKNIC = scan.Str(word)
			case 2:
				b.NetStack = scan.Str(word)
			}
		}
		r.Bindings = append(r.Bindings, b)
	}, nil)
	r.NotUnderstood(heading || len(r.Bindings) > 0, text)
	return r
}
