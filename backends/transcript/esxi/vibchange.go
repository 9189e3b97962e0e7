package esxi

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// VIBChange is what esxcli software vib install, update and remove, and profile update print.
type VIBChange struct {
	scan.Envelope
	Operation      *string  `json:"operation"` // install or remove, as the heading says
	Message        *string  `json:"message"`
	RebootRequired *bool    `json:"reboot_required"`
	Installed      []VIBRef `json:"vibs_installed"` // nil: not printed
	Removed        []VIBRef `json:"vibs_removed"`
	Skipped        []VIBRef `json:"vibs_skipped"`
}

// VIBRef is a VIB as messages name it: VENDOR_LOCATION_NAME_VERSION.
type VIBRef struct {
	ID      string `json:"id"`
	Vendor  string `json:"vendor"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Requirement is what a VIB needs and the host lacks.
type Requirement struct {
	VIB      string `json:"vib"`
	Requires string `json:"requires"`
}

// Errors of VIBChangeOf.
const (
	CodeAcceptanceLevel = "acceptance_level" // vib, vib_level, host_level
	CodeDependency      = "dependency_error" // requirements
)

// VIBChangeOf reads the result of a change of VIBs.
func VIBChangeOf(text string) VIBChange {
	var r VIBChange
	r.Envelope, text = scan.Begin("esxcli_software_vib_install", text)
	if r.refusals(text); r.Failed() {
		return r
	}
	f := scan.Named("Message", "Reboot Required", "VIBs Installed", "VIBs Removed", "VIBs Skipped", "DPU Results",
		"Installation Result", "Removal Result").Records(text, scan.Opening{})[0]
	r.Message, r.RebootRequired = f.Str("Message"), f.Bool("Reboot Required")
	r.Installed, r.Removed, r.Skipped = vibRefs(f, "VIBs Installed"), vibRefs(f, "VIBs Removed"), vibRefs(f, "VIBs Skipped")
	r.Operation = operation(text)
	if tail := strings.Join(f.Tail, " "); f.Ends("Message") && r.Message != nil && strings.HasSuffix(tail, ".") { // cut after the message
		r.Message = new(*r.Message + " " + tail)
	}
	r.NotUnderstood(r.Operation != nil || r.RebootRequired != nil || r.Installed != nil || r.Removed != nil || r.Skipped != nil ||
		strings.Contains(text, "Update Result") && r.Message != nil, text)
	if r.Failed() {
		r.Message = nil
	}
	return r
}

// operation reads the heading; the first one counts.
func operation(text string) *string {
	install, remove := strings.Index(text, "Installation Result"), strings.Index(text, "Removal Result")
	switch name := ""; {
	case install >= 0 && (remove < 0 || install < remove):
		name = "install"
		return &name
	case remove >= 0:
		name = "remove"
		return &name
	}
	return nil
}

// vibRefs splits a list of ids. Blanks that a line break left inside an id are removed.
func vibRefs(f *scan.Record, label string) []VIBRef {
	if !f.Has(label) {
		return nil
	}
	list := []VIBRef{}
	value := f.Value(label)
	if f.Ends(label) && !slices.ContainsFunc(f.Tail, func(line string) bool { return !likeVIBs.MatchString(line) }) {
		value += " " + strings.Join(f.Tail, " ")
	}
	for piece := range strings.SplitSeq(value, ",") {
		words := strings.Fields(piece)
		if slices.ContainsFunc(words, func(w string) bool { _, ok := vibRef(w); return !ok }) {
			words = []string{strings.Join(words, "")}
		}
		for _, word := range words {
			if ref, ok := vibRef(word); ok {
				list = append(list, ref)
			}
		}
	}
	return list
}

func vibRef(id string) (VIBRef, bool) {
	vendor, rest, _ := strings.Cut(id, "_")
	_, rest, _ = strings.Cut(rest, "_")
	i := strings.LastIndexByte(rest, '_')
	if i <= 0 || vendor == "" || i+1 == len(rest) {
		return VIBRef{}, false
	}
	return VIBRef{ID: id, Vendor: vendor, Name: rest[:i], Version: rest[i+1:]}, true
}

// likeVIBs matches a line of ids: every word contains an underscore, or digits like the end of an id.
var likeVIBs = regexp.MustCompile(`^(?:[\w.-]*[0-9_][\w.-]*,?(?:\s+|$))+$`)

var (
	needs      = regexp.MustCompile(`^VIB\s+(\S+)\s+requires\s+(.+?)\s*,?\s+but\s+the\s+requirement`)
	acceptance = regexp.MustCompile(`^VIB\s+(\S+?)(?:'s)?\s+acceptance\s+level\s+is\s+(\w+),?\s+which\s+is\s+not\s+compliant\s+with\s+the\s+ImageProfile\s+acceptance\s+level\s+(\w+)`)
)

// refusals finds the sentences with which an installation is refused, anywhere: on lines of their own, in log lines, wrapped.
func (r *VIBChange) refusals(text string) {
	const longest = 2048
	requirements := []Requirement{}
	evidence := ""
	for from := 0; ; {
		i := strings.Index(text[from:], "VIB")
		if i < 0 {
			break
		}
		from += i
		window := text[from:min(len(text), from+longest)]
		from += len("VIB")
		if next := strings.Index(window[len("VIB"):], "VIB "); next >= 0 {
			window = window[:next+len("VIB")]
		}
		if len(window) < 8 || window[3] != ' ' && window[3] != '\n' && window[3] != '\t' {
			continue
		}
		window = scan.Squeeze(window)
		if m := needs.FindStringSubmatch(window); m != nil {
			requirements = append(requirements, Requirement{VIB: m[1], Requires: m[2]})
			if evidence == "" {
				evidence = m[0]
			}
		}
		if m := acceptance.FindStringSubmatch(window); m != nil {
			r.Fail(CodeAcceptanceLevel, m[0], map[string]any{"vib": m[1], "vib_level": m[2], "host_level": m[3]})
		}
	}
	switch {
	case len(requirements) > 0:
		r.Fail(CodeDependency, evidence, map[string]any{"requirements": requirements})
	case strings.Contains(text, "[DependencyError]"):
		r.Fail(CodeDependency, "DependencyError", map[string]any{"requirements": requirements})
	case !r.Failed() && strings.Contains(text, "[AcceptanceConfigError]"):
		r.Fail(CodeAcceptanceLevel, "AcceptanceConfigError", map[string]any{"vib": nil, "vib_level": nil, "host_level": nil})
	}
}

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
