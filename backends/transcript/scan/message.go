package scan

import (
	"encoding/json"
	"maps"
	"strings"
)

// Codes that do not belong to one tool.
const (
	// CodeNotUnderstood is the error of a text that contains nothing of the tool.
	CodeNotUnderstood = "not_understood"
	// CodeNoDevices is the error of a tool that reports that there is no device.
	CodeNoDevices = "no_devices"
	// CodeInputCut is the warning of a text longer than MaxInput.
	CodeInputCut = "input_cut"
	// CodeProviderMissing is the warning of libibverbs that it could not load the library of a driver, which the key "provider"
	// names. It is harmless unless no device is found.
	CodeProviderMissing = "provider_missing"
)

// Message is a warning or an error that a tool printed: the code is of the tool's closed list, the text is the line of
// the source. Extra holds the further keys of the code by their JSON name.
type Message struct {
	Code  string
	Text  string
	Extra map[string]any
}

// MarshalJSON writes code, text and the extra keys as one flat object.
func (m Message) MarshalJSON() ([]byte, error) {
	flat := make(map[string]any, len(m.Extra)+2)
	maps.Copy(flat, m.Extra)
	flat["code"], flat["text"] = m.Code, m.Text
	return json.Marshal(flat)
}

// Envelope is what every result has in common. A result embeds it first.
type Envelope struct {
	Tool     string    `json:"tool"`
	Warnings []Message `json:"warnings"`
	Errors   []Message `json:"errors"`
}

// Begin opens the envelope of tool and returns the text cleaned and cut to MaxInput.
func Begin(tool, text string) (Envelope, string) {
	e := Envelope{Tool: tool, Warnings: []Message{}, Errors: []Message{}}
	if len(text) > MaxInput {
		text = text[:MaxInput]
		e.Warn(CodeInputCut, "the text is longer than 16 MiB; the rest was not read")
	}
	return e, Normalize(text)
}

// Warn adds a warning unless one with that code exists.
func (e *Envelope) Warn(code, line string) { e.Warnings = add(e.Warnings, code, line, nil) }

// WarnProvider adds the warning CodeProviderMissing.
func (e *Envelope) WarnProvider(provider, line string) {
	e.Warnings = add(e.Warnings, CodeProviderMissing, line, map[string]any{"provider": provider})
}

// MissingProvider returns the driver whose library libibverbs could not load: "vmw_pvrdma" of "couldn't load driver
// 'libvmw_pvrdma-rdmav34.so'" (rdma-core, libibverbs/dynamic_driver.c); "" of any other line.
func MissingProvider(line string) string {
	file, ok := Between(line, "couldn't load driver '", "'")
	if !ok {
		return ""
	}
	file = file[strings.LastIndexByte(file, '/')+1:]
	name, _, _ := strings.Cut(strings.TrimPrefix(file, "lib"), "-rdmav")
	return name
}

// Fail adds an error unless one with that code exists. Extra may be nil.
func (e *Envelope) Fail(code, line string, extra map[string]any) {
	e.Errors = add(e.Errors, code, line, extra)
}

// NotUnderstood adds the error CodeNotUnderstood unless understood is true or another error exists.
func (e *Envelope) NotUnderstood(understood bool, text string) {
	if understood || len(e.Errors) > 0 {
		return
	}
	e.Fail(CodeNotUnderstood, firstLine(text), nil)
}

// Failed reports whether the text holds an error.
func (e Envelope) Failed() bool { return len(e.Errors) > 0 }

func add(list []Message, code, line string, extra map[string]any) []Message {
	for _, m := range list {
		if m.Code == code {
			return list
		}
	}
	return append(list, Message{Code: code, Text: clip(strings.TrimSpace(line)), Extra: extra})
}

func firstLine(text string) string {
	for line := range Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

func clip(s string) string {
	const limit = 1024
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}
