// Package verbs parses the output of the tools of rdma-core, infiniband-diags, iproute2's rdma and MLNX_OFED about RDMA devices,
// their ports and their GIDs.
package verbs

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// DevicesResult is the text of ibv_devices.
type DevicesResult struct {
	scan.Envelope
	Devices []DeviceName `json:"devices"`
}

// DeviceName is one line of ibv_devices.
type DeviceName struct {
	Name     string  `json:"name"`
	NodeGUID *string `json:"node_guid"`
}

// Devices reads the text of ibv_devices.
func Devices(text string) DevicesResult {
	r := DevicesResult{Devices: []DeviceName{}}
	r.Envelope, text = scan.Begin("ibv_devices", text)
	understood := false
	before := "" // the previous word, also on the previous line
	for line := range scan.Lines(text) {
		lower := strings.ToLower(line)
		if saysNoDevices(lower) {
			r.Fail(scan.CodeNoDevices, line, nil)
		}
		if strings.Contains(lower, "node guid") {
			understood, before = true, ""
		}
		if scan.IsRule(line) {
			before = ""
			continue
		}
		for _, w := range strings.Fields(line) {
			guid := scan.GUID(w)
			if guid != nil && isDeviceName(before) {
				r.Devices = append(r.Devices, DeviceName{before, guid})
				before = ""
				continue
			}
			before = w
		}
	}
	r.NotUnderstood(understood || len(r.Devices) > 0, text)
	return r
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
