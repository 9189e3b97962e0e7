package transcript

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// QoSResult is the text of mlnx_qos -i.
type QoSResult struct {
	scan.Envelope
	DCBXController  *string        `json:"dcbx_controller"` // firmware, os
	Trust           *string        `json:"trust"`           // dscp, pcp
	DSCPToPrio      []int64        `json:"dscp_to_prio"`    // 64 entries by DSCP; nil when not printed
	BufferSizeBytes []int64        `json:"buffer_size_bytes"`
	MaxBufferBytes  *int64         `json:"max_buffer_bytes"`
	CableLengthM    *int64         `json:"cable_length_m"`
	PFCEnabled      []bool         `json:"pfc_enabled"` // by priority
	PFCPriorities   []int64        `json:"pfc_priorities"`
	PFCBuffer       []int64        `json:"pfc_buffer"` // by priority
	TCs             []TrafficClass `json:"tcs"`
}

// TrafficClass is one tc line with the priorities below it.
type TrafficClass struct {
	TC         *int64  `json:"tc"`
	RateLimit  *string `json:"ratelimit"` // "unlimited", "3 Gbps"
	TSA        *string `json:"tsa"`       // ets, strict, vendor
	BWPercent  *int64  `json:"bw_percent"`
	Priorities []int64 `json:"priorities"`
}

var qosKeys = map[string]bool{"dcbx mode": true, "priority trust state": true, "priority trust mode": true, "dscp2prio mapping": true,
	"prio": true, "receive buffer size (bytes)": true, "buffer size (bytes)": true, "cable len": true, "pfc configuration": true,
	"tc": true, "priority": true, "up": true, "skprio": true}

// QoS reads the text of mlnx_qos -i.
func QoS(text string) QoSResult {
	r := QoSResult{BufferSizeBytes: []int64{}, PFCEnabled: []bool{}, PFCPriorities: []int64{}, PFCBuffer: []int64{}, TCs: []TrafficClass{}}
	r.Envelope, text = scan.Begin("mlnx_qos", text)
	understood := false
	prio := int64(-1) // of the dscp list that may continue on the next line
	buffers := false  // the list of buffers continues on the next line
	for line := range scan.Lines(text) {
		if line == "" {
			continue
		}
		if prio >= 0 && isNumberList(line) {
			r.mapDSCP(prio, line)
			continue
		}
		prio = -1
		if buffers && strings.Contains(line, ",") && !strings.Contains(line, ":") {
			r.buffers(strings.TrimSpace(line))
			continue
		}
		buffers = false
		understood = r.row(line) || understood
		key, value, _ := scan.KeyValue(line)
		if !qosKeys[key] {
			continue
		}
		understood = true
		if key == "prio" {
			prio = r.dscp(value)
			continue
		}
		r.set(key, value)
		buffers = strings.HasSuffix(key, "(bytes)") && r.MaxBufferBytes == nil
	}
	r.NotUnderstood(understood, text)
	return r
}

func (r *QoSResult) set(key, value string) {
	switch key {
	case "dcbx mode":
		if word := strings.ToLower(scan.Word(value)); strings.Contains(strings.ToLower(value), "controlled") {
			scan.Keep(&r.DCBXController, &word)
		}
	case "priority trust state", "priority trust mode":
		scan.Keep(&r.Trust, scan.Str(strings.ToLower(scan.Word(value))))
	case "receive buffer size (bytes)", "buffer size (bytes)":
		r.buffers(value)
	case "cable len":
		scan.Keep(&r.CableLengthM, scan.LeadingInt(value))
	case "tc":
		r.tc(value)
	case "priority", "up":
		if n := scan.LeadingInt(value); n != nil && len(r.TCs) > 0 {
			last := &r.TCs[len(r.TCs)-1]
			last.Priorities = append(last.Priorities, *n)
		}
	}
}

// dscp reads "3 dscp:31,30,29," and returns the priority.
func (r *QoSResult) dscp(value string) int64 {
	n := scan.LeadingInt(value)
	_, list, ok := strings.Cut(value, ":")
	if n == nil || !ok {
		return -1
	}
	r.mapDSCP(*n, list)
	return *n
}

func (r *QoSResult) mapDSCP(prio int64, list string) {
	if r.DSCPToPrio == nil {
		r.DSCPToPrio = make([]int64, 64)
	}
	for d := range strings.SplitSeq(list, ",") {
		if n := scan.Int(d); n != nil && *n >= 0 && *n < 64 {
			r.DSCPToPrio[*n] = prio
		}
	}
}

func isNumberList(line string) bool {
	line = strings.TrimSpace(line)
	return strings.Contains(line, ",") && strings.Trim(line, "0123456789, ") == ""
}

// buffers reads "156096,105792,0,0,0,0,0,0,max_buffer_size=262016".
func (r *QoSResult) buffers(value string) {
	for part := range strings.SplitSeq(value, ",") {
		if name, size, ok := strings.Cut(part, "="); ok {
			if strings.TrimSpace(name) == "max_buffer_size" {
				scan.Keep(&r.MaxBufferBytes, scan.LeadingInt(size))
			}
		} else if n := scan.Int(part); n != nil && len(r.BufferSizeBytes) < 8 {
			r.BufferSizeBytes = append(r.BufferSizeBytes, *n)
		}
	}
}

// row reads the rows "enabled 0 0 0 1" and "buffer 0 0 0 1" of the PFC table, and its heading "priority 0 1 2 3".
func (r *QoSResult) row(line string) bool {
	words := strings.Fields(line)
	if len(words) < 2 {
		return false
	}
	var values []int64
	for _, w := range words[1:] {
		n := scan.Int(w)
		if n == nil {
			break
		}
		values = append(values, *n)
	}
	if len(values) == 0 {
		return false
	}
	switch strings.ToLower(words[0]) {
	case "priority":
	case "enabled":
		if len(r.PFCEnabled) > 0 {
			return true
		}
		for i, v := range values {
			r.PFCEnabled = append(r.PFCEnabled, v != 0)
			if v != 0 {
				r.PFCPriorities = append(r.PFCPriorities, int64(i))
			}
		}
	case "buffer":
		if len(r.PFCBuffer) == 0 {
			r.PFCBuffer = values
		}
	default:
		return false
	}
	return true
}

// tc reads "0 ratelimit: unlimited, tsa: ets, bw: 50%".
func (r *QoSResult) tc(value string) {
	number := scan.LeadingInt(value)
	if number == nil {
		return
	}
	tc := TrafficClass{TC: number, Priorities: []int64{}}
	_, settings, _ := strings.Cut(value, " ")
	for setting := range strings.SplitSeq(settings, ",") {
		switch key, v, _ := scan.KeyValue(setting); key {
		case "ratelimit":
			tc.RateLimit = scan.Str(v)
		case "tsa":
			tc.TSA = scan.Str(v)
		case "bw":
			tc.BWPercent = scan.LeadingInt(v)
		}
	}
	r.TCs = append(r.TCs, tc)
}
