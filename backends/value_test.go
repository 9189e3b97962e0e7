package backends_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rdma-setup/rdma-setup/backends"
)

// hostile are texts and objects that resemble a state of a value.
var hostile = []any{
	"unknown until x", "unknown until ", "absent", "null", "partial", "", `{"$value":"unknown","until":"x"}`, "\ufffd", `\ufffd`, "<&>\u2028",
	map[string]any{"$value": "unknown", "until": "x"}, map[string]any{"$value": "data", "part": map[string]any{"$value": "data"}},
	map[string]any{"$value": nil}, map[string]any{"a": map[string]any{"$value": "partial"}}, []any{nil}, []any{}, map[string]any{}, 0, false,
	1e300,
}

func states() map[string]backends.Value {
	all := map[string]backends.Value{
		"absent": backends.Absent, "unknown": backends.Unknown("host/esx-01/host-ssh"), "unknown until nothing": backends.Unknown(""),
		"unknown until something": backends.Unknown("unknown until x"), "unknown with bytes": backends.Unknown("\xff"),
		"partial of nothing": backends.Partial(nil),
	}
	for _, h := range hostile {
		b, _ := json.Marshal(h)
		all["data "+string(b)], all["partial "+string(b)] = backends.ValueOf(h), backends.Partial(h)
	}
	return all
}

func TestEveryStateIsDifferentAndComesBack(t *testing.T) {
	seen := map[backends.Value]string{}
	for name, v := range states() {
		if other, is := seen[v]; is {
			t.Errorf("%s equals %s", name, other)
		}
		seen[v] = name
		if err := v.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if v.Known() == strings.HasPrefix(name, "unknown") || v.IsAbsent() != (name == "absent") ||
			v.IsPartial() != strings.HasPrefix(name, "partial") {
			t.Errorf("%s: known %v, absent %v, partial %v", name, v.Known(), v.IsAbsent(), v.IsPartial())
		}
		var into any
		if err := v.Decode(&into); (err == nil) != strings.HasPrefix(name, "data") {
			t.Errorf("%s decodes: %v", name, err)
		}
		text, err := json.Marshal([]backends.Value{v})
		var back []backends.Value
		if err != nil || json.Unmarshal(text, &back) != nil || len(back) != 1 || back[0] != v {
			t.Errorf("%s became %s: %v", name, text, err)
		}
		plain, state, err := v.Plain()
		if got, bad := backends.ReadPlain(plain, state); err != nil || bad != nil || got != v {
			t.Errorf("%s stands as %s (%q) and is read as %s: %v, %v", name, plain, state, got, err, bad)
		}
	}
}

func TestPlainJSONIsReadable(t *testing.T) {
	for want, v := range map[string]backends.Value{
		"null": backends.Absent, `"unknown until host/esx-01/host-ssh"`: backends.Unknown("host/esx-01/host-ssh"),
		`"vmk0"`:                 backends.ValueOf("vmk0"),
		`{"cidr":"10.0.0.1/24"}`: backends.Partial(map[string]string{"cidr": "10.0.0.1/24"}),
	} {
		if got, _, err := v.Plain(); err != nil || string(got) != want {
			t.Errorf("%s stands as %s: %v", v, got, err)
		}
	}
	if v, err := backends.ReadPlain(nil, ""); err != nil || v != backends.Absent {
		t.Errorf("what is left out is %s: %v", v, err)
	}
}

func TestDecodingFailsLoudly(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                "",
		"cut off":                `{"a":1`,
		"no JSON":                "unknown",
		"trailing value":         `1 2`,
		"trailing garbage":       `"a"x`,
		"foreign state":          `{"$value":"perhaps"}`,
		"state is no text":       `{"$value":1}`,
		"state is null":          `{"$value":null}`,
		"unknown, no until":      `{"$value":"unknown"}`,
		"unknown, until null":    `{"$value":"unknown","until":null}`,
		"unknown with part":      `{"$value":"unknown","until":"x","part":1}`,
		"unknown and more":       `{"$value":"unknown","until":"x","by":"y"}`,
		"unknown, other case":    `{"$value":"unknown","UNTIL":"x"}`,
		"partial of null":        `{"$value":"partial","part":null}`,
		"partial with until":     `{"$value":"partial","until":"x"}`,
		"data that needs no tag": `{"$value":"data","part":{"a":1}}`,
		"data without data":      `{"$value":"data"}`,
		"not UTF-8":              "\"\xff\"",
		"too deep":               strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
	} {
		v := backends.ValueOf("before")
		if err := v.UnmarshalJSON([]byte(text)); err == nil || v != backends.ValueOf("before") {
			t.Errorf("%s is read as %s", name, v)
		}
	}
	for name, bad := range map[string]struct {
		text  string
		state backends.State
	}{
		"foreign state": {`"a"`, "perhaps"}, "unknown without until": {`"vmk0"`, "unknown"}, "unknown number": {`1`, "unknown"},
		"cut off": {`{"a"`, ""},
	} {
		if v, err := backends.ReadPlain(json.RawMessage(bad.text), bad.state); err == nil {
			t.Errorf("%s is read as %s", name, v)
		}
	}
	for text, want := range map[string]backends.Value{
		`null`: backends.Absent, ` [ 1 , 2 ] `: backends.ValueOf([]int{1, 2}), `{"b":1,"a":2}`: backends.ValueOf(map[string]int{"a": 2, "b": 1}),
		`"\ud83d\ude00"`: backends.ValueOf("😀"), `"\ufffd"`: backends.ValueOf("\ufffd"), `"\\ud800"`: backends.ValueOf(`\ud800`),
	} {
		var v backends.Value
		if err := json.Unmarshal([]byte(text), &v); err != nil || v != want {
			t.Errorf("%s is read as %s: %v", text, v, err)
		}
	}
}

func TestInvalidValueHasAnError(t *testing.T) {
	for name, v := range map[string]backends.Value{
		"NaN": backends.ValueOf(math.NaN()), "function": backends.ValueOf(func() {}), "channel": backends.ValueOf([]any{make(chan int)}),
		"partial NaN": backends.Partial(math.Inf(1)), "partial of unknown": backends.Partial(backends.Unknown("x")),
	} {
		var into any
		if v.Err() == nil || v.Decode(&into) == nil || v.IsAbsent() || v == backends.ValueOf(v.String()) {
			t.Errorf("%s gives %s", name, v)
		}
		if text, err := json.Marshal(v); err == nil {
			t.Errorf("%s is written as %s", name, text)
		}
		if text, _, err := v.Plain(); err == nil {
			t.Errorf("%s is written as %s", name, text)
		}
	}
}

func TestPartialReturnsWhatExists(t *testing.T) {
	complete := backends.ValueOf([]string{"a"})
	if p := backends.Partial([]string{"a"}); p == complete || p.Part() != complete || p != backends.Partial(complete) ||
		p.String() != "partial (a)" {
		t.Errorf("%s: %s", p, p.Part())
	}
	if v := backends.ValueOf(backends.Persist{Modules: []string{"ib_umad"}}); v.String() != "modules ib_umad" {
		t.Errorf("a member without a value is shown: %s", v)
	}
	// The mode of a file is shown as chmod(1) takes it; other modes are words.
	for state, want := range map[any]string{
		struct {
			Mode  uint32 `json:"mode"`
			Owner string `json:"owner"`
		}{0o600, "0:0"}: "mode 0600; owner 0:0",
		struct {
			Mode uint32 `json:"mode"`
		}{0o2755}: "mode 02755",
		struct {
			Mode string `json:"mode"`
		}{"sameSize"}: "mode sameSize",
	} {
		if got := backends.ValueOf(state).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if p := backends.Partial(nil); p.IsAbsent() || !p.Part().IsAbsent() || p.String() != "partial" {
		t.Errorf("%s: %s", p, p.Part())
	}
	if complete.Part() != complete || backends.ValueOf(complete) != complete {
		t.Error("data is not left as it is")
	}
}

func FuzzValueJSON(f *testing.F) {
	for _, v := range states() {
		b, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{`{"a":1,"a":2}`, `"\ud800\udc00"`, `{"$value":"data","part":{"$value":1}}`, "1 2", "1e999",
		`{"$value":"partial","part":-0.0}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v, back backends.Value
		if v.UnmarshalJSON(b) != nil {
			return
		}
		if !json.Valid(b) || !utf8.Valid(b) {
			t.Errorf("%q is taken for %s", b, v)
		}
		text, err := json.Marshal(v)
		if err != nil || json.Unmarshal(text, &back) != nil || back != v {
			t.Errorf("%q became %s, then %s: %v", b, text, back, err)
		}
		plain, state, err := v.Plain()
		if got, bad := backends.ReadPlain(plain, state); err != nil || bad != nil || got != v {
			t.Errorf("%q stands as %s (%q) and is read as %s: %v, %v", b, plain, state, got, err, bad)
		}
	})
}

func FuzzValueOfText(f *testing.F) {
	for _, h := range hostile {
		if s, is := h.(string); is {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\ufffd")
		v := backends.ValueOf(s)
		var got string
		if v.Err() != nil || (v.Decode(&got) != nil || got != s || !v.Known() || v.IsAbsent() || v.IsPartial()) {
			t.Errorf("%q became %q", s, got)
		}
	})
}
