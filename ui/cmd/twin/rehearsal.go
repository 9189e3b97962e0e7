package twin

import (
	"bytes"
	_ "embed" // page.html
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// A Rehearsal is the result of a run on a twin. The JSON names are documented; times are in seconds.
type Rehearsal struct {
	Status       string                 `json:"status"`
	Hash         string                 `json:"plan_hash"`
	Plan         []string               `json:"plan"` // the changes, as text
	Steps        []Step                 `json:"steps"`
	Window       int                    `json:"window_s"`
	Worst        int                    `json:"worst_vm_outage_s"`
	WindowRange  [2]int                 `json:"window_range_s"` // at least, at most
	WorstRange   [2]int                 `json:"worst_vm_outage_range_s"`
	Warnings     []string               `json:"warnings"` // such as faults that were not applied
	Times        []string               `json:"times"`    // assumed durations, and their origin
	Failed       []string               `json:"failed"`
	Checks       map[checks.Status]int  `json:"checks"` // after the run on the twin, by status
	Findings     []string               `json:"findings"`
	Measurements []perftest.Measurement `json:"measurements"` // simulated
	Rollback     string                 `json:"rollback"`     // result of the rollback on the twin; "" if nothing was applied
	Restored     bool                   `json:"restored"`     // the plan is the same again afterwards
	Differs      []string               `json:"differs"`      // differences between the plans before the run and after the rollback
	NotUndone    []string               `json:"rollback_failed"`
	NotBack      []string               `json:"not_back"` // hosts and VMs that are out of service at the end of the run on the twin
	Assumed      []string               `json:"assumed"`
	Simulated    bool                   `json:"simulated"`
	Stay         int                    `json:"-"` // how many of Differs cannot be undone

	out  map[string]int
	down map[string][]Span
	lost map[string]string
}

// NewRehearsal returns a rehearsal with the twin's assumptions and the durations.
func NewRehearsal(assumed, times []string) *Rehearsal {
	return &Rehearsal{Assumed: assumed, Times: times, Plan: []string{}, Steps: []Step{}, Failed: []string{}, Checks: map[checks.Status]int{},
		Findings: []string{}, Measurements: []perftest.Measurement{}, Differs: []string{}, Warnings: []string{}, NotBack: []string{},
		NotUndone: []string{}, Simulated: true}
}

// spread is the assumed range of a site's durations: plus or minus one part in spread of those used for a timeline.
const spread = 5

func ranged(seconds int) [2]int { return [2]int{seconds - seconds/spread, seconds + seconds/spread} }

// Take adds a timeline.
func (r *Rehearsal) Take(t Timeline) {
	r.Status, r.Steps, r.Window, r.Worst, r.out, r.down = string(t.Result), t.Steps, t.Window, t.Worst(), t.Out, t.Down
	r.lost, r.NotBack = t.Lost, append(r.NotBack, slices.SortedFunc(maps.Keys(t.Lost), plain.Natural)...)
	r.WindowRange, r.WorstRange = ranged(r.Window), ranged(r.Worst)
	for _, e := range t.Failed {
		r.Failed = append(r.Failed, e.Node+": "+e.Err)
	}
}

// Judged adds the findings of the checks after the run, and counts the rows that apply to nothing.
func (r *Rehearsal) Judged(found []checks.Finding, nothing []string) {
	r.Checks = checks.Count(found, nothing...)
	for _, f := range found {
		if f.Status == checks.Fail {
			r.Findings = append(r.Findings, f.ID+" "+f.Target.Name+": "+f.Evidence)
		}
	}
}

// A row is a row of the Gantt chart.
type row struct {
	Target string
	Off    string // for how long a VM is off, and what is out of service at the end; "" for none
	Work   []Step
	Down   []Span
}

func (r *Rehearsal) rows() []row {
	var by plain.Gathered[string, Step]
	for _, s := range r.Steps {
		by.Add(s.Target, s)
	}
	slices.SortFunc(by.Keys, plain.Natural)
	var rows []row
	for target, steps := range by.All() {
		next := row{Target: target, Work: steps, Down: r.down[target]}
		if out := r.out[target]; out > 0 {
			next.Off = "off for " + Clock(out)
		}
		if lost := r.lost[target]; lost != "" {
			next.Off = strings.TrimPrefix(next.Off+", "+lost, ", ")
		}
		rows = append(rows, next)
	}
	return rows
}

// lists are printed below the timeline.
func (r *Rehearsal) lists() []list {
	measured := []string{}
	for _, m := range r.Measurements {
		if m.Verdict != perftest.VerdictPass {
			measured = append(measured, fmt.Sprintf("%s -> %s %s: %s %s", m.From, m.To, m.Test, m.Verdict, m.Hint))
		}
	}
	return []list{
		{"failed:", r.Failed}, {"checks that failed after the run on the twin:", r.Findings},
		{"measured below the expected value (SIMULATED):", measured},
		{"failed in the rollback on the twin:", r.NotUndone}, {"not as before after the rollback on the twin:", r.Differs},
		{"durations:", r.Times}, {"assumed, because it was not collected:", r.Assumed},
	}
}

type list struct {
	Title string
	Rows  []string
}

// ends are the lines about the end of the run on the twin.
func (r *Rehearsal) ends() []string {
	var out []string
	if len(r.Checks) > 0 {
		text := "checks on the twin:"
		for _, s := range slices.Sorted(maps.Keys(r.Checks)) {
			if r.Checks[s] > 0 {
				text += fmt.Sprintf(" %d %s,", r.Checks[s], plain.LinkWord(s))
			}
		}
		out = append(out, strings.TrimSuffix(text, ","))
	}
	if len(r.Measurements) > 0 {
		good := 0
		for _, m := range r.Measurements {
			if m.Verdict == perftest.VerdictPass {
				good++
			}
		}
		out = append(out, fmt.Sprintf("measurements on the twin (SIMULATED): %d of %d as expected", good, len(r.Measurements)))
	}
	if r.Rollback != "" {
		text := "; the plan is the same again"
		switch {
		case len(r.NotUndone) > 0:
			text = "; not everything is as before, because steps of the rollback failed"
		case r.Restored:
		case len(r.Differs) == 0: // such as a component that vCenter keeps, and need not fetch again
			text = "; the plan has the same changes again, and describes some of them differently"
		case r.Stay == len(r.Differs):
			text = "; the plan is not the same as before: changes that it marks as irreversible stay"
		default:
			text = "; the plan is not the same as before"
		}
		out = append(out, "rollback on the twin: "+r.Rollback+text)
	}
	return out
}

func (r *Rehearsal) head() []string {
	head := r.Status
	if r.Hash != "" {
		head += ", plan " + r.Hash[:min(12, len(r.Hash))]
	}
	out := []string{head}
	if len(r.Steps) > 0 {
		between := func(r [2]int) string { return "expect " + Clock(r[0]) + " to " + Clock(r[1]) }
		out = append(out, "window: "+Clock(r.Window)+"; "+between(r.WindowRange), "longest time that a VM is off: "+Clock(r.Worst)+"; "+
			between(r.WorstRange))
	}
	if len(r.NotBack) > 0 {
		out = append(out, "out of service at the end: "+plain.Names(r.NotBack))
	}
	for _, w := range r.Warnings {
		out = append(out, "warning: "+w)
	}
	return out
}

const simulated = "SIMULATED: rehearsed on a twin of the site; nothing was written to the site"

// Text writes the rehearsal for display.
func (r *Rehearsal) Text(w io.Writer) error {
	var b bytes.Buffer
	print := func(format string, args ...any) { _ = plain.Printf(&b, format, args...) } // to memory
	print("%s\n", simulated)
	for _, line := range r.head() {
		print("%s\n", line)
	}
	if len(r.Plan) > 0 {
		const most = 12
		print("\nplan (%d changes):\n", len(r.Plan))
		for _, line := range r.Plan[:min(most, len(r.Plan))] {
			print("  %s\n", line)
		}
		if n := len(r.Plan) - most; n > 0 {
			print("  and %d more: rdma-setup plan lists them\n", n)
		}
	}
	if len(r.Steps) > 0 {
		print("\n")
		for _, line := range r.Chart(r.cells()) {
			print("%s\n", line)
		}
	}
	print("\n")
	for _, line := range r.ends() {
		print("%s\n", line)
	}
	for _, l := range r.lists() {
		if len(l.Rows) > 0 {
			print("\n%s\n", l.Title)
		}
		for _, row := range l.Rows {
			print("  %s\n", row)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// cells returns the width of the timeline in a line of 78 columns, which also contains the name and the outage.
func (r *Rehearsal) cells() int {
	widest, notes := 0, len("off for 10h10m10s")
	for _, row := range r.rows() {
		widest, notes = max(widest, len([]rune(row.Target))), max(notes, len(row.Off))
	}
	return min(max(20, 78-widest-len("    ")-notes), 50)
}

// Chart draws a line for each target, width columns for the time: # while it is out of service, = while an operation runs on it, .
// otherwise.
func (r *Rehearsal) Chart(width int) []string {
	rows, widest := r.rows(), len("TARGET")
	for _, row := range rows {
		widest = max(widest, len([]rune(row.Target)))
	}
	lines := []string{fmt.Sprintf("%-*s  0%*s", widest, "TARGET", width-1, Clock(r.Window))}
	for _, row := range rows {
		cells := bytes.Repeat([]byte{'.'}, width)
		mark := func(from, to int, with byte) {
			column := func(s int) int { return min(width-1, s*width/max(1, r.Window)) }
			for i := column(from); i <= column(max(from, to-1)); i++ {
				cells[i] = with
			}
		}
		for _, s := range row.Work {
			mark(s.Start, s.End, '=')
		}
		for _, s := range row.Down {
			mark(s.From, s.To, '#')
		}
		line := fmt.Sprintf("%-*s  %s", widest, row.Target, cells)
		if row.Off != "" {
			line += "  " + row.Off
		}
		lines = append(lines, line)
	}
	return append(lines, "# out of service, = worked on")
}

//go:embed page.html
var page string

// HTML writes the rehearsal as one page that loads nothing.
func (r *Rehearsal) HTML(w io.Writer) error {
	percent := func(seconds int) string { return fmt.Sprintf("%.2f", 100*float64(seconds)/float64(max(1, r.Window))) }
	t, err := template.New("page").Funcs(template.FuncMap{
		"at": percent, "wide": func(from, to int) string { return percent(max(1, to-from)) }, "clock": Clock,
	}).Parse(page)
	if err != nil {
		return err
	}
	var b strings.Builder
	err = t.Execute(&b, backends.Shown(map[string]any{
		"Simulated": simulated, "Head": r.head(), "Rows": r.rows(), "Window": r.Window, "Ends": r.ends(),
		"Lists": append([]list{{"plan:", r.Plan}}, r.lists()...),
	}))
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// Clock formats a time in seconds: 1h2m3s.
func Clock(seconds int) string { return (time.Duration(seconds) * time.Second).String() }
