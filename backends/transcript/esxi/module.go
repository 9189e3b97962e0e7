// Package esxi parses the output of ESXi's own tools: esxcli, esxcfg-*, vmware -v and lspci. Package nic below parses NICs and
// RDMA devices.
package esxi

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// ModuleOptions is the line of "esxcfg-module -g MODULE".
type ModuleOptions struct {
	scan.Envelope
	Module      *string           `json:"module"`
	Enabled     *bool             `json:"enabled"`
	OptionsText *string           `json:"options_text"` // between the quotes, "" when none is set
	Options     map[string]string `json:"options"`
}

var moduleLine = regexp.MustCompile(`(\S+)\s+enabled\s*=\s*(\w+)\s+options\s*=\s*(?:'([^']*)'?|"([^"]*)"?)`)

// ModuleOptionsOf reads "esxcfg-module -g".
func ModuleOptionsOf(text string) ModuleOptions {
	r := ModuleOptions{Options: map[string]string{}}
	r.Envelope, text = scan.Begin("esxcfg_module", text)
	m := moduleLine.FindStringSubmatch(near(text, "enabled", 256, 8192))
	if m == nil {
		r.NotUnderstood(false, text)
		return r
	}
	options := m[3] + m[4]
	if strings.Contains(options, "\n") {
		options = scan.Squeeze(options)
	}
	enabled := m[2] == "1"
	r.Module, r.Enabled, r.OptionsText = &m[1], &enabled, &options
	if b := scan.Bool(m[2]); b != nil {
		r.Enabled = b
	}
	for _, option := range strings.Fields(options) {
		if name, value, ok := strings.Cut(option, "="); ok {
			r.Options[name] = value
		}
	}
	return r
}

// near returns the part of a text around the first mark, so that a search over lines is fast.
func near(text, mark string, before, after int) string {
	i := strings.Index(text, mark)
	if i < 0 {
		return ""
	}
	return text[max(0, i-before):min(len(text), i+after)]
}

// Parameters is the table of "esxcli system module parameters list -m MODULE".
type Parameters struct {
	scan.Envelope
	Parameters []Parameter `json:"parameters"`
}

// Parameter is one option that a module takes.
type Parameter struct {
	Name        string  `json:"name"`
	Type        *string `json:"type"`        // may hold blanks: "array of uint"
	Value       *string `json:"value"`       // nil when it is not set
	Description *string `json:"description"` // all its lines
	Default     *string `json:"default"`     // what the description says
}

// CodeUnknownModule is the error of ParameterList for a module that the host does not have.
const CodeUnknownModule = "unknown_module"

var (
	parameterRow = regexp.MustCompile(`^([A-Za-z_][\w.-]*)\s+((?i:array\s+of\s+)?(?i:u?int(?:8|16|32|64)?|u?short|u?long|u?byte|u?char|charp|string|strings|bool|invbool))(?:\s+|$)(.*)$`)
	defaultMark  = regexp.MustCompile(`(?i)\bdefault(?: value)?\s*:\s*`)
	notThere     = regexp.MustCompile(`(?i)\b(?:unknown|invalid|unable to find|could not find|can't find|cannot find|not found|no such|` +
		`does not exist|doesn't exist|not a valid|unable to load|not exist|no (?:option|module))\b`)
	likeValue = regexp.MustCompile(`^(?i:0x[0-9a-f]+|[-0-9][-0-9.,:]*|true|false|yes|no|[^\s,]+(?:,[^\s,]*)+)$`)
)

// wrapWidth is the minimum length of a line that may have been wrapped.
const wrapWidth = 60

// ParameterList reads "esxcli system module parameters list".
func ParameterList(text string) Parameters {
	r := Parameters{Parameters: []Parameter{}}
	r.Envelope, text = scan.Begin("esxcli_system_module_parameters_list", text)
	var (
		header          *scan.Header
		indent          = -1   // of the rows
		broken          = true // a gap: what follows does not continue a row
		blank           bool   // the previous line was blank
		sawIndented     bool
		before          int // length of the previous line
		cur             *Parameter
		description     []string
		heading, closed = false, func() {
			if cur != nil {
				cur.describe(description)
				r.Parameters = append(r.Parameters, *cur)
			}
			cur, description = nil, nil
		}
	)
	for line := range scan.Lines(text) {
		trimmed := strings.TrimSpace(line)
		in := scan.Indent(line)
		width := before
		before = len(line)
		if h := parameterHeader(trimmed); h != nil {
			closed()
			header, heading, indent = h, true, in
			continue
		}
		if header != nil && header.Rule(trimmed) {
			continue
		}
		if trimmed == "" || scan.IsGap(trimmed) {
			broken, blank = broken || trimmed != "", true
			continue
		}
		afterBlank := blank
		blank = false
		m := parameterOf(trimmed)
		deeper := indent >= 0 && in > indent+1
		switch {
		case m != nil && !(deeper && cur != nil && !broken):
			closed()
			p := parameter(trimmed, m, header)
			if cur = &p.Parameter; p.text != "" {
				description = []string{p.text}
			}
			broken = false
			if indent < 0 {
				indent = in
			}
		case cur != nil && !broken && (deeper || !afterBlank && (!sawIndented || width >= wrapWidth)) && len(description) < 256:
			sawIndented = sawIndented || deeper
			description = append(description, trimmed)
		case strings.Contains(strings.ToLower(trimmed), "module") && notThere.MatchString(trimmed):
			r.Fail(CodeUnknownModule, trimmed, nil)
		default:
			broken = true
		}
	}
	closed()
	r.NotUnderstood(heading || len(r.Parameters) > 0, text)
	return r
}

// parameterOf matches a row, after a cheap check for the words of a type.
func parameterOf(line string) []string {
	if !mentions(line, "int", "str", "bool", "short", "long", "byte", "char", "array") {
		return nil
	}
	return parameterRow.FindStringSubmatch(line)
}

func parameterHeader(line string) *scan.Header {
	if !strings.HasPrefix(line, "Name") || !strings.Contains(line, "Type") {
		return nil
	}
	return scan.NewHeader(line, 3, "Name", "Type", "Value", "Description")
}

type described struct {
	Parameter
	text string // the first line of the description
}

// parameter splits a row. Whether it has a value is decided by the heading, or without one by the form of the words.
func parameter(line string, m []string, h *scan.Header) described {
	kind := scan.Squeeze(m[2])
	p := described{Parameter: Parameter{Name: m[1], Type: &kind}}
	if h != nil {
		c := h.Row(line)
		value, text := c.At("Value"), c.At("Description")
		if c.At("Name") == m[1] && scan.Squeeze(c.At("Type")) == kind {
			if strings.Contains(value, " ") {
				value, text = "", strings.TrimSpace(value+" "+text)
			}
			p.Value, p.text = scan.Str(value), text
			return p
		}
	}
	parts := scan.Cells(m[3])
	if len(parts) == 1 {
		if first, rest, _ := strings.Cut(parts[0], " "); likeValue.MatchString(first) {
			parts = []string{first, strings.TrimSpace(rest)}
		} else {
			parts = []string{"", parts[0]}
		}
	}
	if len(parts) > 1 {
		p.Value, p.text = scan.Str(parts[0]), strings.Join(parts[1:], " ")
	}
	return p
}

func (p *Parameter) describe(lines []string) {
	for _, line := range lines {
		if at := defaultMark.FindStringIndex(line); at != nil && p.Default == nil {
			p.Default = scan.Str(line[at[1]:])
		}
	}
	p.Description = scan.Str(strings.Join(lines, " "))
}
