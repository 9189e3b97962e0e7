package transcript

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

// deviceKeys are the fields of a device.
var deviceKeys = scan.Keys[Device]{
	"transport": func(d *Device, v string) {
		name, _, _ := strings.Cut(v, "(")
		scan.Keep(&d.Transport, scan.Str(name))
	},
	"fw ver":         func(d *Device, v string) { scan.Keep(&d.FWVersion, scan.Str(scan.Word(v))) },
	"node guid":      func(d *Device, v string) { scan.Keep(&d.NodeGUID, scan.GUID(scan.Word(v))) },
	"sys image guid": func(d *Device, v string) { scan.Keep(&d.SysImageGUID, scan.GUID(scan.Word(v))) },
	"vendor id":      func(d *Device, v string) { scan.Keep(&d.VendorID, scan.HexID(scan.Word(v))) },
	"vendor part id": func(d *Device, v string) { scan.Keep(&d.VendorPartID, scan.LeadingInt(v)) },
	"hw ver":         func(d *Device, v string) { scan.Keep(&d.HWVersion, scan.Str(scan.Word(v))) },
	"board id":       func(d *Device, v string) { scan.Keep(&d.BoardID, scan.Str(scan.Word(v))) },
	"phys port cnt":  func(d *Device, v string) { scan.Keep(&d.PortCount, scan.LeadingInt(v)) },
}

// portKeys are the fields of a port.
var portKeys = scan.Keys[Port]{
	"state":      func(p *Port, v string) { scan.Keep(&p.State, scan.Str(scan.Word(v))) },
	"max mtu":    func(p *Port, v string) { scan.Keep(&p.MaxMTU, scan.LeadingInt(v)) },
	"active mtu": func(p *Port, v string) { scan.Keep(&p.ActiveMTU, scan.LeadingInt(v)) },
	"sm lid":     func(p *Port, v string) { scan.Keep(&p.SMLID, scan.LeadingInt(v)) },
	"port lid":   func(p *Port, v string) { scan.Keep(&p.PortLID, scan.LeadingInt(v)) },
	"port lmc":   func(p *Port, v string) { scan.Keep(&p.LMC, scan.LeadingInt(v)) },
	"link layer": func(p *Port, v string) { scan.Keep(&p.LinkLayer, scan.Str(scan.Word(v))) },
	"active width": func(p *Port, v string) {
		if w := scan.Word(v); strings.HasSuffix(w, "X") {
			scan.Keep(&p.ActiveWidth, &w)
		}
	},
	"active speed": func(p *Port, v string) { scan.Keep(&p.ActiveSpeedGbps, scan.LeadingFloat(v)) },
	"phys state":   func(p *Port, v string) { scan.Keep(&p.PhysicalState, scan.Str(scan.Word(v))) },
}

// DevInfo reads the text of ibv_devinfo, with and without -v.
func DevInfo(text string) DevInfoResult {
	r := DevInfoResult{Devices: []Device{}}
	r.Envelope, text = scan.Begin("ibv_devinfo", text)
	opened := r.messages(text)
	var dev *Device
	var port *Port
	known := func(key string) bool {
		return key == "hca id" || key == "port" || deviceKeys.Known(key) || portKeys.Known(key) || strings.HasPrefix(key, "gid[")
	}
	for p := range scan.Pairs(text, known) {
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
		case deviceKeys.Set(dev, p.Key, p.Value), port == nil, portKeys.Set(port, p.Key, p.Value):
		default:
			if isHalfGID(p.Value) {
				p.Value += " " + p.Next
			}
			port.gid(strings.TrimPrefix(p.Key, "gid["), p.Value)
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
		switch provider := scan.MissingProvider(line); {
		case provider != "":
			r.WarnProvider(provider, line)
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

func (p *Port) gid(index, value string) {
	gid, kind, _ := strings.Cut(value, ",")
	if g := scan.GID(scan.Word(gid)); g != nil {
		p.GIDs = append(p.GIDs, PortGID{scan.LeadingInt(index), g, scan.Str(kind)})
	}
}

// isDeviceName reports whether a word can name an RDMA device: letters, digits and a few marks, beginning with a letter.
func isDeviceName(s string) bool {
	if s == "" || len(s) > 64 || (s[0]|0x20 < 'a' || s[0]|0x20 > 'z') && s[0] != '<' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', strings.IndexByte("_-.<>", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// saysNoDevices recognizes the messages of the verbs tools that there is no device, or not the requested one.
func saysNoDevices(lower string) bool {
	switch {
	case strings.Contains(lower, "no ib devices"), strings.Contains(lower, "no rdma devices"),
		strings.Contains(lower, "failed to get ib devices list"), strings.Contains(lower, "can't list ib device"),
		strings.Contains(lower, "sysfs files not found"), strings.Contains(lower, "sys files not found"), strings.Contains(lower, "0 hcas found"):
		return true
	case strings.Contains(lower, "ib device") || strings.Contains(lower, "infiniband device"):
		return strings.Contains(lower, "not found") || strings.Contains(lower, "wasn't found") ||
			strings.Contains(lower, "can't be found") || strings.Contains(lower, "no such file")
	}
	return false
}
