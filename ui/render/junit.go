package render

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// The elements that both the schema of Ant's JUnit report and that of Jenkins' xUnit plug-in (junit-10) allow, in order. There is
// no element for warnings: a warning is a skipped case, whose message every viewer shows, and its text is also in system-out.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Package    string          `xml:"package,attr"`
	ID         int             `xml:"id,attr"`
	Name       string          `xml:"name,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Hostname   string          `xml:"hostname,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	Out        string          `xml:"system-out"`
	Err        string          `xml:"system-err"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Skipped *junitProblem `xml:"skipped"`
	Error   *junitProblem `xml:"error"`
	Failure *junitProblem `xml:"failure"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"` // "": skipped
	Text    string `xml:",chardata"`
}

// JUnit prints the report for CI: one suite for each scope of checks, one for measurements and one for changes. A failed check is a
// failure, an unknown check that matters is an error, a quiet check is skipped.
func JUnit(w io.Writer, r *report.Report) error {
	j := &junit{r: backends.Shown(r), v: backends.Shown(report.Decide(r)), at: map[string]int{}}
	for _, f := range j.r.Checks {
		j.check(f)
	}
	for _, m := range j.r.Measurements {
		j.measurement(m)
	}
	for _, o := range j.r.Changes {
		j.outcome(o)
	}
	if !j.told() {
		j.verdict()
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(j.all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

type junit struct {
	r   *report.Report
	v   report.Verdict
	all junitSuites
	at  map[string]int
}

// told reports whether the cases say what the verdict says: one of them is a failure or an error, or there is nothing that is one.
func (j *junit) told() bool {
	good := j.v.Exit == 0 || j.v.Name == report.WithWarnings
	return len(j.all.Suites) > 0 && (good || slices.ContainsFunc(j.all.Suites, func(s junitSuite) bool { return s.Failures+s.Errors > 0 }))
}

func (j *junit) verdict() {
	c := junitCase{Name: "verdict", Class: "rdma-setup"}
	said := cmp.Or(j.v.Cause, j.r.Err, j.v.Summary)
	switch mark := j.v.Mark(); {
	case mark == checks.Fail, j.v.Name == report.NotMeasured:
		c.Failure = problem("verdict", j.v.Summary, said)
	case mark == checks.Unknown:
		c.Error = problem("unknown", j.v.Summary, said)
	case mark == checks.Warn:
		c.Skipped = &junitProblem{Message: "WARN " + j.v.Summary}
	}
	j.add("verdict", c, j.v.Summary)
}

// add adds a case to the suite of that name; said is added to the suite's system-out.
func (j *junit) add(suite string, c junitCase, said string) {
	i, ok := j.at[suite]
	if !ok {
		i = len(j.all.Suites)
		j.at[suite] = i
		j.all.Suites = append(j.all.Suites, j.suite(i, suite))
	}
	s := &j.all.Suites[i]
	c.Time = "0"
	s.Cases = append(s.Cases, c)
	s.count(c)
	if said != "" {
		s.Out += said + "\n"
	}
}

func (j *junit) suite(id int, name string) junitSuite {
	s := junitSuite{Package: "rdma-setup", ID: id, Name: name, Timestamp: j.r.Made.UTC().Format("2006-01-02T15:04:05"), Hostname: "localhost",
		Time: "0"}
	if u, err := url.Parse(j.r.VCenter); err == nil && u.Hostname() != "" {
		s.Hostname = token(u.Hostname())
	}
	if n := j.r.NCCL; n != nil && name == "measured" {
		for _, v := range n.Env {
			s.Properties = append(s.Properties, junitProperty{token(v.Name), token(v.Value)})
		}
	}
	for _, p := range []junitProperty{{"verdict", string(j.v.Name)}, {"exit", fmt.Sprint(j.v.Exit)}, {"run", j.r.Run}, {"mode", j.r.Mode},
		{"vcenter", j.r.VCenter}, {"tool", j.r.Tool},
		{"simulated", fmt.Sprint(j.r.Simulated)}, {"insecure", strings.Join(j.r.Insecure, "; ")}} {
		if p.Value != "" {
			s.Properties = append(s.Properties, junitProperty{p.Name, p.Value})
		}
	}
	return s
}

// token formats text as the schemas allow for a name: one line, no spaces at either end, no repeated spaces.
func token(s string) string { return strings.Join(strings.Fields(s), " ") }

func (s *junitSuite) count(c junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func (j *junit) check(f checks.Finding) {
	c := junitCase{Name: token(f.ID + " " + f.Target.Name), Class: strings.TrimSuffix("rdma-setup.checks."+token(f.Scope), ".")}
	said := ""
	switch {
	case f.State() == checks.NotRead:
		c.Skipped = &junitProblem{Message: f.Evidence}
	case f.Status == checks.Fail:
		c.Failure = problem("check", f.Evidence, "remedy: "+f.Remedy, "source: "+f.Source)
	case f.Status == checks.Warn:
		said = "WARN " + f.ID + " " + f.Target.Name + ": " + f.Evidence + " (remedy: " + f.Remedy + ")"
		c.Skipped = &junitProblem{Message: "WARN " + f.Evidence}
	case f.Status == checks.Unknown:
		c.Error = problem("unknown", f.Evidence)
	}
	j.add(token("checks "+f.Scope), c, said)
}

func (j *junit) measurement(m perftest.Measurement) {
	pair := m.Test + " " + m.Pair()
	c := junitCase{Name: token(pair), Class: "rdma-setup.measured"}
	said := pair + ": " + measuredFigure(m)
	switch m.Verdict {
	case perftest.VerdictFail:
		c.Failure = problem("measurement", measuredFigure(m), m.Error, m.Why, m.Hint)
	case perftest.VerdictUnknown:
		c.Error = problem("unknown", measuredFigure(m), m.Error, m.Why, m.Hint)
	case perftest.VerdictNotApplicable:
		c.Skipped = &junitProblem{Message: m.Why}
	case perftest.VerdictWarn:
		said = "WARN " + said + " (" + m.Hint + ")"
		c.Skipped = &junitProblem{Message: "WARN " + measuredFigure(m)}
	}
	j.add("measured", c, said)
}

func measuredFigure(m perftest.Measurement) string {
	switch {
	case m.AchievedGbps > 0 && m.ExpectedGbps > 0:
		return fmt.Sprintf("%s of %.1f expected", m.Figure(), m.ExpectedGbps)
	case m.AchievedGbps == 0 && m.AchievedUs > 0 && m.ExpectedUs > 0:
		return fmt.Sprintf("%s, good up to %g", m.Figure(), m.ExpectedUs)
	}
	return cmp.Or(m.Figure(), "not measured")
}

func (j *junit) outcome(o report.Outcome) {
	c := junitCase{Name: token(o.ID()), Class: "rdma-setup.changed"}
	switch o.State {
	case "failed":
		c.Failure = problem("change", plan.Title(o.Change)+": "+o.Err)
	case "blocked", "pending":
		c.Skipped = &junitProblem{Message: engine.NodeBlocked.Word()}
	}
	j.add("changed", c, "")
}

// problem returns a problem with the first line as its message and all lines as its text.
func problem(kind string, lines ...string) *junitProblem {
	var kept []string
	for _, l := range lines {
		if _, text, labelled := strings.Cut(l, ": "); l != "" && (!labelled || text != "") {
			kept = append(kept, l)
		}
	}
	return &junitProblem{Message: lines[0], Type: kind, Text: strings.Join(kept, "\n")}
}
