package transcript

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// OFEDResult is the text of ofed_info, with and without -s.
type OFEDResult struct {
	scan.Envelope
	Prefix   *string `json:"prefix"`   // MLNX_OFED_LINUX
	Version  *string `json:"version"`  // 5.8-1.1.2.1
	Internal *bool   `json:"internal"` // DOCA and development builds: OFED-internal-...
}

// bareVersion is what ofed_info -n prints.
var bareVersion = regexp.MustCompile(`^\s*([0-9]+\.[0-9]+-[0-9]+(?:\.[0-9]+)+):?$`)

// OFED reads the text of ofed_info: the first word that is a name of OFED with a version.
func OFED(text string) OFEDResult {
	var r OFEDResult
	r.Envelope, text = scan.Begin("ofed_info", text)
lines:
	for line := range scan.Lines(text) {
		if m := bareVersion.FindStringSubmatch(line); m != nil {
			r.Version, r.Internal = &m[1], new(false)
			break
		}
		for _, w := range strings.Fields(line) {
			prefix, version, ok := ofedName(strings.TrimLeft(w, "(["))
			if !ok {
				continue
			}
			r.Prefix, r.Version, r.Internal = &prefix, &version, new(strings.Contains(strings.ToLower(prefix), "internal"))
			break lines
		}
	}
	r.NotUnderstood(r.Version != nil, text)
	return r
}

// ofedName splits "MLNX_OFED_LINUX-5.8-1.1.2.1:" before its first number.
func ofedName(w string) (prefix, version string, ok bool) {
	if len(w) > 128 {
		return "", "", false
	}
	for i := 1; i+1 < len(w); i++ {
		if w[i] != '-' || w[i+1] < '0' || w[i+1] > '9' {
			continue
		}
		end := i + 1
		for end < len(w) && (w[end] >= '0' && w[end] <= '9' || w[end] == '.' || w[end] == '-') {
			end++
		}
		prefix, version = w[:i], strings.TrimRight(w[i+1:end], ".-")
		upper := strings.ToUpper(prefix)
		return prefix, version, strings.Contains(upper, "OFED") && !strings.Contains(prefix, "/") && strings.Contains(version, ".")
	}
	return "", "", false
}
