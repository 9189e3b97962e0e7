package console_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	"github.com/rdma-setup/rdma-setup/ui/form/dialog"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
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
			"run": func(w io.Writer) error {
				run := live.NewRun(theme.Plain())
				for _, kind := range eventTypes {
					event := *filled[engine.Event](e)
					event.Type = kind
					run.Event(event)
					fmt.Fprintln(w, run.View(400, 200, time.Now()))
				}
				for _, load := range []string{"", broken} {
					measured := filled[perftest.Progress](e)
					measured.Waits, measured.Load = "", load
					run.Measured(*measured)
				}
				run.Measured(*filled[perftest.Progress](e))
				for _, key := range []string{"down", "d", "x", "/", "esc"} {
					run.Key(key, broken)
					fmt.Fprintln(w, run.View(400, 200, time.Now()))
				}
				run.Said(broken, nil)
				_, err := fmt.Fprintln(w, run.View(400, 200, time.Now()))
				return err
			},
			"table": func(w io.Writer) error {
				table := live.NewTable(theme.Plain(), []live.Column{{Title: "A"}, {Title: "B"}, {Title: "C"}}, *filled[[]live.Row](e))
				fmt.Fprintln(w, table.View(400, 200))
				table.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
				_, err := fmt.Fprintln(w, table.View(400, 200))
				return err
			},
			"wizard": func(w io.Writer) error {
				world := &evilFabric{e: e}
				f := frame.New(t.Context(), frame.Options{Fabric: world, Answers: filled[answers.Answers](e), Theme: theme.Plain()},
					[]frame.Page{blank{}, blank{}}, nil)
				f.Update(tea.WindowSizeMsg{Width: 300, Height: 60})
				f.Show(1)
				for _, step := range []func(){func() { f.Fail(world.err()) }, func() { f.Err = nil; f.Say(broken) },
					func() { f.Do(broken, nil, nil) }, func() {
						answered, end := context.WithCancel(t.Context())
						defer end()
						f.Send = func(m tea.Msg) { f.Update(m); end() }
						world.ask(answered, *filled[live.Question](e))
					}} {
					step()
					fmt.Fprintln(w, f.View().Content)
				}
				return nil
			},
			"questions": func(w io.Writer) error {
				world := &evilFabric{e: e, unknown: true}
				secret := func(prompt string) (string, error) { return "x", nil }
				_, err := dialog.Run(t.Context(), dialog.Options{Fabric: world, Answers: &answers.Answers{}, Out: w, Secret: secret,
					In: strings.NewReader("look\nvc\nroot\ny\ny\n")})
				return err
			},
			"found": func(w io.Writer) error {
				var b strings.Builder
				entry.Refusals(&b, filled[plan.Refused](e))
				_, err := fmt.Fprintln(w, entry.Inspected(theme.Plain(), inv, r), b.String())
				return err
			},
			"rehearsal": rehearsed.Text, "rehearsal page": rehearsed.HTML,
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

// An evilFabric answers with evil data; its vCenter's certificate is unknown at first.
type evilFabric struct {
	live.Fabric
	e       *evil
	unknown bool
	ask     live.Ask
}

func (f *evilFabric) err() error {
	return backends.Errorf(backends.KindAuth, broken, broken, "%s", broken)
}
func (f *evilFabric) Asks(ask live.Ask)                    { f.ask = ask }
func (f *evilFabric) Default() live.Login                  { return *filled[live.Login](f.e) }
func (f *evilFabric) Simulated() bool                      { return false }
func (f *evilFabric) Insecure() []string                   { return []string{broken} }
func (f *evilFabric) InspectCommand() string               { return broken }
func (f *evilFabric) Draft() (*answers.Answers, time.Time) { return nil, time.Time{} }
func (f *evilFabric) KeepDraft(*answers.Answers) error     { return nil }

func (f *evilFabric) Reachable(context.Context, live.Login) error {
	if f.unknown {
		f.unknown = false
		return filled[live.Fingerprint](f.e)
	}
	return nil
}

func (f *evilFabric) Connect(context.Context, live.Login, func(*backends.Inventory)) (*backends.Inventory, error) {
	return filled[backends.Inventory](f.e), nil
}

func (f *evilFabric) Inspect(ctx context.Context, _ *answers.Answers) (*backends.Inventory, *report.Report, error) {
	f.ask(ctx, *filled[live.Question](f.e))
	return filled[backends.Inventory](f.e), filled[report.Report](f.e), nil
}

// A blank is a page of the wizard.
type blank struct{}

func (blank) Title() string                                 { return "" }
func (blank) Enter(*frame.Wizard) tea.Cmd                   { return nil }
func (blank) Update(*frame.Wizard, tea.Msg) (tea.Cmd, bool) { return nil, false }
func (blank) Accept(*frame.Wizard) (tea.Cmd, error)         { return nil, nil }
func (blank) View(*frame.Wizard, int, int) string           { return "" }
func (blank) Hints() []frame.Hint                           { return nil }
func (blank) EnterLabel() string                            { return "" }
func (blank) Typing() bool                                  { return false }

var eventTypes = []engine.EventType{engine.EventPlanned, engine.EventStarted, engine.EventProgress, engine.EventDone, engine.EventSkipped,
	engine.EventFailed, engine.EventBlocked, engine.EventAgain, engine.EventWaiting, engine.EventControl, engine.EventForecast,
	engine.EventStopping, engine.EventResult}

func safe(t *testing.T, name, out string) {
	t.Helper()
	if len(out) < 10 || !utf8.ValidString(out) {
		t.Errorf("%s: nothing or no UTF-8 came out", name)
	}
	out = strings.NewReplacer("\x1b[7m", "", "\x1b[1m", "", "\x1b[m", "", "<\n>", "\x01").Replace(out) // the theme's styles
	if i := strings.IndexFunc(out, func(r rune) bool {
		return r != '\n' && r != utf8.RuneError && (backends.Unsafe(r) || r == '\u2028')
	}); i >= 0 {
		t.Errorf("%s: %q", name, out[max(0, i-80):min(len(out), i+20)])
	}
}
