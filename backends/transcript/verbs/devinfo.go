package verbs

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// DevInfoResult is the text of ibv_devinfo.
type DevInfoResult struct {
	scan.Envelope
	Devices      []Device `json:"devices"`
	OpenFailures int      `json:"open_failures"` // number of messages that a device could not be opened
}

// Device is one hca_id block.
type Device struct {
	Name         string  `json:"name"`
	Transport    *string `json:"transport"` // InfiniBand (also for RoCE), iWARP
	FWVersion    *string `json:"fw_version"`
	NodeGUID     *string `json:"node_guid"`
	SysImageGUID *string `json:"sys_image_guid"`
	VendorID     *string `json:"vendor_id"`
	VendorPartID *int64  `json:"vendor_part_id"`
	HWVersion    *string `json:"hw_version"`
	BoardID      *string `json:"board_id"`
	PortCount    *int64  `json:"port_count"`
	Ports        []Port  `json:"ports"`
}

// Port is one port of a Device. MTUs are bytes; the speed is that of one lane.
type Port struct {
	Port            *int64    `json:"port"`
	State           *string   `json:"state"` // PORT_ACTIVE
	MaxMTU          *int64    `json:"max_mtu"`
	ActiveMTU       *int64    `json:"active_mtu"`
	SMLID           *int64    `json:"sm_lid"`
	PortLID         *int64    `json:"port_lid"`
	LMC             *int64    `json:"lmc"`
	LinkLayer       *string   `json:"link_layer"`
	ActiveWidth     *string   `json:"active_width"`
	ActiveSpeedGbps *float64  `json:"active_speed_gbps"`
	PhysicalState   *string   `json:"physical_state"`
	GIDs            []PortGID `json:"gids"`
}

// PortGID is one entry of a port's GID table.
type PortGID struct {
	Index *int64  `json:"index"`
	GID   *string `json:"gid"`
	Type  *string `json:"type"` // "RoCE v2"
}

// codeOpenFailed is a warning when another device was read, else an error.
const codeOpenFailed = "device_open_failed"

var devInfoKeys = map[string]bool{"hca id": true, "transport": true, "fw ver": true, "node guid": true, "sys image guid": true,
	"vendor id": true, "vendor part id": true, "hw ver": true, "board id": true, "phys port cnt": true, "port": true, "state": true,
	"max mtu": true, "active mtu": true, "sm lid": true, "port lid": true, "port lmc": true, "link layer": true,
	"active width": true, "active speed": true, "phys state": true, "max msg sz": true, "port cap flags": true, "max mr size": true,
	"device ports": true, "hcas found": true}

// DevInfo reads the text of ibv_devinfo, with and without -v.
func DevInfo(text string) DevInfoResult {
	r := DevInfoResult{Devices: []Device{}}
	r.Envelope, text = scan.Begin("ibv_devinfo", text)
	opened := r.messages(text)
	var dev *Device
	var port *Port
	known := func(key string) bool { return devInfoKeys[key] || strings.HasPrefix(key, "gid[") }
	for p := range scan.AllPairs(text, known) {
		switch {
		case p.Key == "hca id":
			r.Devices = append(r.Devices, Device{Name: scan.Word(p.Value), Ports: []Port{}})
			dev, port = &r.Devices[len(r.Devices)-1], nil
		case dev == nil:
		case p.Key == "port":
			if n := scan.LeadingInt(p.Value); n != nil {
				dev.Ports = append(dev.Ports, Port{Port: n, GIDs: []PortGID{}})
				port = &dev.Ports[len(dev.Ports)-1]
			}
		case dev.set(p.Key, p.Value):
		case port != nil:
			if strings.HasPrefix(p.Key, "gid[") && isHalfGID(p.Value) {
				p.Value += " " + p.Next
			}
			port.set(p.Key, p.Value)
		}
	}
	if opened != "" {
		if len(r.Devices) > 0 {
			r.Warn(codeOpenFailed, opened)
		} else {
			r.Fail(codeOpenFailed, opened, nil)
		}
	}
	r.NotUnderstood(len(r.Devices) > 0, text)
	return r
}

// messages counts the devices that could not be opened and reads the list of ibv_devinfo -l.
func (r *DevInfoResult) messages(text string) (opened string) {
	listed := false
	for line := range scan.Lines(text) {
		if line == "" {
			continue
		}
		lower := strings.ToLower(line)
		switch {
		case strings.Contains(lower, "failed to open device"):
			if r.OpenFailures += strings.Count(lower, "failed to open device"); opened == "" {
				opened = line
			}
		case saysNoDevices(lower):
			r.Fail(scan.CodeNoDevices, line, nil)
		case strings.HasSuffix(lower, "hcas found:") || strings.HasSuffix(lower, "hca found:"):
			listed = true
		case listed:
			name := strings.TrimSpace(line)
			if listed = isDeviceName(name) && strings.ContainsAny(name, "0123456789"); listed {
				r.Devices = append(r.Devices, Device{Name: name, Ports: []Port{}})
			}
		}
	}
	return opened
}

// isHalfGID recognizes "fe80::1," and "fe80::1, RoCE", which continue on the next line.
func isHalfGID(value string) bool {
	return strings.HasSuffix(value, ",") || strings.HasSuffix(value, "RoCE")
}

func (d *Device) set(key, value string) bool {
	switch key {
	case "transport":
		name, _, _ := strings.Cut(value, "(")
		keep(&d.Transport, scan.Str(name))
	case "fw ver":
		keep(&d.FWVersion, scan.Str(scan.Word(value)))
	case "node guid":
		keep(&d.NodeGUID, scan.GUID(scan.Word(value)))
	case "sys image guid":
		keep(&d.SysImageGUID, scan.GUID(scan.Word(value)))
	case "vendor id":
		keep(&d.VendorID, scan.HexID(scan.Word(value)))
	case "vendor part id":
		keep(&d.VendorPartID, scan.LeadingInt(value))
	case "hw ver":
		keep(&d.HWVersion, scan.Str(scan.Word(value)))
	case "board id":
		keep(&d.BoardID, scan.Str(scan.Word(value)))
	case "phys port cnt":
		keep(&d.PortCount, scan.LeadingInt(value))
	default:
		return false
	}
	return true
}

func (p *Port) set(key, value string) {
	switch key {
	case "state":
		keep(&p.State, scan.Str(scan.Word(value)))
	case "max mtu":
		keep(&p.MaxMTU, scan.LeadingInt(value))
	case "active mtu":
		keep(&p.ActiveMTU, scan.LeadingInt(value))
	case "sm lid":
		keep(&p.SMLID, scan.LeadingInt(value))
	case "port lid":
		keep(&p.PortLID, scan.LeadingInt(value))
	case "port lmc":
		keep(&p.LMC, scan.LeadingInt(value))
	case "link layer":
		keep(&p.LinkLayer, scan.Str(scan.Word(value)))
	case "active width":
		if w := scan.Word(value); strings.HasSuffix(w, "X") {
			keep(&p.ActiveWidth, &w)
		}
	case "active speed":
		keep(&p.ActiveSpeedGbps, scan.LeadingFloat(value))
	case "phys state":
		keep(&p.PhysicalState, scan.Str(scan.Word(value)))
	}
	if inside, ok := strings.CutPrefix(key, "gid["); ok {
		gid, kind, _ := strings.Cut(value, ",")
		if g := scan.GID(scan.Word(gid)); g != nil {
			p.GIDs = append(p.GIDs, PortGID{scan.LeadingInt(inside), g, scan.Str(kind)})
		}
	}
}

// keep sets a field that is not set yet: the first value of a block wins.
func keep[T any](to **T, value *T) {
	if *to == nil {
		*to = value
	}
}
