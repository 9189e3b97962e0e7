package console_test

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// An evil fills values: every text has an escape, a direction mark, an invalid byte and line breaks between marks. Texts that only a
// few words are good for take turns, with an evil one among them.
type evil struct {
	n    int
	flag bool
}

const broken = "\x00\x1b]0;x\x07\u202e\x9b\xff<\n>\u2028\x1b[2J"

var words = map[reflect.Type][]string{
	reflect.TypeFor[checks.Status](): {"fail", "warn", "unknown", "pass", broken}, reflect.TypeFor[perftest.Verdict](): {"fail", "pass", "warn", broken},
	reflect.TypeFor[backends.TargetType](): {"host", "vm", "guest", broken}, reflect.TypeFor[backends.BracketKind](): {"reboot", "power", broken},
	reflect.TypeFor[plan.Disruption](): {string(plan.UplinkFlap), broken},
	reflect.TypeFor[backends.Kind]():   {"module-params", "extra", "packages", "firmware", "adapter", "address", "vib", broken},
}

func (e *evil) fill(v reflect.Value, name string, depth int) {
	e.n++
	switch {
	case depth > 9:
	case v.Type() == reflect.TypeFor[backends.Value]():
		v.Set(reflect.ValueOf([]backends.Value{backends.ValueOf(map[string]any{name + broken: name + broken}), backends.ValueOf(broken + broken),
			backends.Unknown(broken), backends.Absent, backends.Partial(broken)}[e.n%5]))
	case v.Kind() == reflect.String:
		if some := words[v.Type()]; some != nil {
			v.SetString(some[e.n%len(some)])
		} else {
			v.SetString(name + broken)
		}
	case v.Kind() == reflect.Bool:
		v.SetBool(e.flag)
	case v.CanInt():
		v.SetInt(int64(1 + e.n%3))
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(float64(1 + e.n%40))
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		fallthrough
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			e.fill(v.Index(i), name, depth+1)
		}
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		e.fill(key, name, depth+1)
		e.fill(value, name, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		e.fill(v.Elem(), name, depth+1)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				e.fill(v.Field(i), v.Type().Field(i).Name, depth+1)
			}
		}
	}
}

func filled[T any](e *evil) *T {
	v := new(T)
	e.fill(reflect.ValueOf(v).Elem(), "", 0)
	return v
}

// TestBorders: whatever a renderer is given, no character comes out that acts on a terminal or changes the direction of a line, and no
// line break of the data.
func TestBorders(t *testing.T) {
	for _, flag := range []bool{false, true} {
		e := &evil{flag: flag}
		inv, found, links := filled[backends.Inventory](e), filled[[12]checks.Finding](e)[:], *filled[[]checks.Link](e)
		r, p, other := filled[report.Report](e), filled[plan.Plan](e), filled[plan.Plan](e)
		for i, state := range []string{"failed", "blocked"} {
			r.Changes[i].State = state
		}
		rehearsed := filled[twin.Rehearsal](e)
		writers := map[string]func(io.Writer) error{
			"inventory": func(w io.Writer) error { return plain.Inventory(w, inv) },
			"findings":  func(w io.Writer) error { return plain.Findings(w, found, r.Causes()...) },
			"chain":     func(w io.Writer) error { return plain.Chain(w, links, &found[0]) },
			"plan":      func(w io.Writer) error { return plain.Plan(w, p) },
			"changes":   func(w io.Writer) error { return plain.Changes(w, p) },
			"runbook":   func(w io.Writer) error { return plain.Markdown(w, p) },
			"diff":      func(w io.Writer) error { return plain.Diff(w, broken, p, other) },
			"events": func(w io.Writer) error {
				for _, kind := range eventTypes {
					event := *filled[engine.Event](e)
					event.Type = kind
					plain.Lines(w)(event)
					plain.JSONLines(w)(event)
				}
				return nil
			},
			"lines": func(w io.Writer) error {
				_, err := io.WriteString(w, plain.LineDiff(broken+broken, broken))
				return err
			},
			"json": func(w io.Writer) error { return render.JSON(w, r) },
			"html": func(w io.Writer) error { return render.HTML(w, r) }, "markdown": func(w io.Writer) error { return render.Markdown(w, r) },
			"junit": func(w io.Writer) error { return render.JUnit(w, r) }, "nagios": func(w io.Writer) error { return render.Nagios(w, r) },
			"prometheus": func(w io.Writer) error { return render.Prometheus(w, r) },
			"terminal":   func(w io.Writer) error { return render.Terminal(w, r, theme.Plain()) },
			"screen":     func(w io.Writer) error { return render.Screen(w, r, theme.Plain(), 2000) },
			"rehearsal":  rehearsed.Text, "rehearsal page": rehearsed.HTML,
		}
		for name, write := range writers {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			safe(t, name, b.String())
		}
	}
}

var eventTypes = []engine.EventType{engine.EventPlanned, engine.EventStarted, engine.EventProgress, engine.EventDone, engine.EventSkipped,
	engine.EventFailed, engine.EventBlocked, engine.EventAgain, engine.EventWaiting, engine.EventControl, engine.EventForecast,
	engine.EventStopping, engine.EventResult}

func safe(t *testing.T, name, out string) {
	t.Helper()
	if len(out) < 10 || !utf8.ValidString(out) {
		t.Errorf("%s: nothing or no UTF-8 came out", name)
	}
	out = strings.ReplaceAll(out, "<\n>", "\x01")
	if i := strings.IndexFunc(out, func(r rune) bool {
		return r != '\n' && r != utf8.RuneError && (backends.Unsafe(r) || r == '\u2028')
	}); i >= 0 {
		t.Errorf("%s: %q", name, out[max(0, i-80):min(len(out), i+20)])
	}
}
