package esxi

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Options is what "esxcli system settings advanced list" prints.
type Options struct {
	scan.Envelope
	Options []Option `json:"options"`
}

// Option is an advanced setting of the host.
type Option struct {
	Path               string  `json:"path"` // "/Net/PVRDMAVmknic"
	Type               *string `json:"type"` // integer or string
	IntValue           *int64  `json:"int_value"`
	DefaultIntValue    *int64  `json:"default_int_value"`
	MinValue           *int64  `json:"min_value"`
	MaxValue           *int64  `json:"max_value"`
	StringValue        *string `json:"string_value"`
	DefaultStringValue *string `json:"default_string_value"`
	Description        *string `json:"description"`
}

// CodeUnknownOption is the error of OptionList for a path that the host does not know.
const CodeUnknownOption = "unknown_option"

var noOption = regexp.MustCompile(`(?i)\b(?:option|path|setting|branch|node)s?\b`)

// OptionList reads "esxcli system settings advanced list".
func OptionList(text string) Options {
	r := Options{Options: []Option{}}
	r.Envelope, text = scan.Begin("esxcli_system_settings_advanced_list", text)
	records := scan.Named("Path", "Type", "Int Value", "Default Int Value", "Min Value", "Max Value", "String Value",
		"Default String Value", "Valid Characters", "Description", "Host Specific", "Impact", "Hidden",
	).Records(text, scan.Opening{First: "Path"})
	for _, f := range records {
		if !strings.HasPrefix(f.Value("Path"), "/") {
			continue
		}
		r.Options = append(r.Options, Option{
			Path: f.Value("Path"), Type: f.Str("Type"), IntValue: f.Int("Int Value"), DefaultIntValue: f.Int("Default Int Value"),
			MinValue: f.Int("Min Value"), MaxValue: f.Int("Max Value"), StringValue: f.Str("String Value"),
			DefaultStringValue: f.Str("Default String Value"), Description: f.Str("Description"),
		})
	}
	if len(r.Options) == 0 {
		for line := range scan.Lines(text) {
			if mentions(line, "ption", "ath", "etting", "ranch", "ode") && noOption.MatchString(line) && notThere.MatchString(line) {
				r.Fail(CodeUnknownOption, line, nil)
			}
		}
	}
	r.NotUnderstood(len(r.Options) > 0 || strings.Contains(text, "Default Int Value:"), text)
	return r
}

func mentions(line string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(line, w) {
			return true
		}
	}
	return false
}
