package transcript

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
		"Installation Result", "Removal Result").Record(text)
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
	acceptance = regexp.MustCompile(
		`^VIB\s+(\S+?)(?:'s)?\s+acceptance\s+level\s+is\s+(\w+),?\s+which\s+is\s+not\s+compliant\s+with\s+the\s+ImageProfile\s+acceptance\s+level\s+(\w+)`)
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
