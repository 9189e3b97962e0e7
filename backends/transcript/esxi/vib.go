package esxi

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// VIBs is the table of "esxcli software vib list".
type VIBs struct {
	scan.Envelope
	VIBs []VIB `json:"vibs"`
}

// VIB is an installed package.
type VIB struct {
	Name            string  `json:"name"`
	Version         *string `json:"version"`
	Vendor          *string `json:"vendor"`
	AcceptanceLevel *string `json:"acceptance_level"` // VMwareCertified, ...
	InstallDate     *string `json:"install_date"`     // 2024-02-19
}

var (
	vibStart = regexp.MustCompile(`\S+\s+\S+\s+\S+\s+(?:VMware|Partner|Community)(?:Certified|Accepted|Supported)\b`)
	vibDate  = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	vibLevel = regexp.MustCompile(`(?i)^(?:VMware|Partner|Community|Broadcom)(?:Certified|Accepted|Supported)$`)
)

// VIBList reads "esxcli software vib list". ESXi 8 adds the column Platforms, which is not read.
func VIBList(text string) VIBs {
	r := VIBs{VIBs: []VIB{}}
	r.Envelope, text = scan.Begin("esxcli_software_vib_list", text)
	text = scan.Unfold(text, vibStart)
	heading := false
	begun := "" // a row that is wrapped
	for line := range scan.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Name") && strings.Contains(line, "Version") && strings.Contains(line, "Vendor") {
			heading, begun = true, ""
			continue
		}
		v, ok := vib(line)
		if begun != "" && line != "" && (!ok || startsWithVersion(v.Name) && !strings.Contains(begun, " ")) {
			v, ok = vib(begun + " " + line)
		}
		begun = ""
		if n := len(r.VIBs); !ok && n > 0 && r.VIBs[n-1].InstallDate == nil {
			if words := strings.Fields(line); len(words) > 0 && vibDate.MatchString(words[0]) {
				r.VIBs[n-1].InstallDate = &words[0]
				continue
			}
		}
		switch {
		case ok:
			r.VIBs = append(r.VIBs, v)
		case len(line) < 512:
			begun = line
		}
	}
	r.NotUnderstood(heading || len(r.VIBs) > 0, text)
	return r
}

// startsWithVersion reports whether the name of a row is on the previous line.
func startsWithVersion(name string) bool {
	return name[0] >= '0' && name[0] <= '9' && strings.Contains(name, ".")
}

// vib splits a row at its acceptance level and its date: the other columns may be empty or contain blanks.
func vib(line string) (VIB, bool) {
	if len(line) > 1024 {
		return VIB{}, false
	}
	words := strings.Fields(line)
	if len(words) < 3 || len(words) > 16 {
		return VIB{}, false
	}
	v := VIB{Name: words[0]}
	end := len(words)
	for i := 2; i < len(words); i++ {
		switch {
		case vibLevel.MatchString(words[i]):
			v.AcceptanceLevel, end = &words[i], min(end, i)
		case vibDate.MatchString(words[i]):
			v.InstallDate, end = &words[i], min(end, i)
		}
	}
	if v.AcceptanceLevel == nil && v.InstallDate == nil {
		return VIB{}, false
	}
	v.Version = scan.Str(words[1])
	if end > 2 {
		v.Vendor = scan.Str(strings.Join(words[2:end], " "))
	}
	return v, true
}
