package render_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A rule is what the schemas of Ant's JUnit report (windyroad JUnit.xsd) and of Jenkins' xUnit plug-in (junit-10.xsd)
// both require of an element: its attributes with their patterns, the required ones, and its children in order.
type rule struct {
	attributes map[string]string
	required   []string
	children   []string // in this order
	one        bool     // of the children at most one
	text       bool
}

const (
	token   = `\S(.*\S)?`
	decimal = `[0-9]*\.?[0-9]+`
)

var junitRules = map[string]rule{
	"testsuites": {children: []string{"testsuite"}},
	"testsuite": {
		attributes: map[string]string{"package": token, "id": `\d+`, "name": token, "timestamp": `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`,
			"hostname": token, "tests": `\d+`, "failures": `\d+`, "errors": `\d+`, "skipped": `\d+`, "time": decimal},
		required: []string{"package", "id", "name", "timestamp", "hostname", "tests", "failures", "errors", "time"},
		children: []string{"properties", "testcase", "system-out", "system-err"},
	},
	"properties": {children: []string{"property"}},
	"property":   {attributes: map[string]string{"name": token, "value": `.*`}, required: []string{"name", "value"}},
	"testcase": {attributes: map[string]string{"name": token, "classname": token, "time": decimal},
		required: []string{"name", "classname", "time"},
		children: []string{"skipped", "error", "failure"}, one: true},
	"skipped":    {attributes: map[string]string{"message": `.*`}},
	"error":      {attributes: map[string]string{"message": `.*`, "type": `.*`}, required: []string{"type"}, text: true},
	"failure":    {attributes: map[string]string{"message": `.*`, "type": `.*`}, required: []string{"type"}, text: true},
	"system-out": {text: true},
	"system-err": {text: true},
}

// An opened is an element that is being read.
type opened struct {
	name string
	last int // index of the last child in the rule
	kids int
	attr map[string]string
	seen map[string]int // children of a suite's cases, by name
}

// junitShape returns the elements of a JUnit document, and fails if a schema would.
func junitShape(t testing.TB, doc string) string {
	t.Helper()
	shape, err := junitValid(doc)
	if err != nil {
		t.Fatal(err)
	}
	return shape
}

func junitValid(doc string) (string, error) {
	d := xml.NewDecoder(strings.NewReader(doc))
	var shape []string
	open := []*opened{{name: ""}}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		top := open[len(open)-1]
		switch e := tok.(type) {
		case xml.StartElement:
			o, err := enter(top, e)
			if err != nil {
				return "", err
			}
			if e.Name.Local == "testcase" || top.name == "testcase" {
				suite := open[2]
				suite.seen[e.Name.Local]++
			}
			open = append(open, o)
			shape = append(shape, e.Name.Local)
		case xml.EndElement:
			if err := leave(top); err != nil {
				return "", err
			}
			open = open[:len(open)-1]
		case xml.CharData:
			if strings.TrimSpace(string(e)) != "" && !junitRules[top.name].text {
				return "", fmt.Errorf("text %q in <%s>", e, top.name)
			}
		}
	}
	return strings.Join(shape, "\n"), nil
}

func enter(top *opened, e xml.StartElement) (*opened, error) {
	name := e.Name.Local
	r, known := junitRules[name]
	parent, inside := junitRules[top.name]
	place := slices.Index(parent.children, name)
	switch {
	case !known:
		return nil, fmt.Errorf("<%s> is in no schema", name)
	case !inside && name != "testsuites":
		return nil, fmt.Errorf("the document begins with <%s>", name)
	case inside && (place < top.last || place < 0):
		return nil, fmt.Errorf("<%s> in <%s> at the wrong place", name, top.name)
	case inside && place == top.last && top.kids > 0 && !slices.Contains([]string{"testsuite", "testcase", "property"}, name):
		return nil, fmt.Errorf("<%s> twice in <%s>", name, top.name)
	case parent.one && top.kids > 0:
		return nil, fmt.Errorf("<%s> after another in <%s>", name, top.name)
	}
	top.last = place
	top.kids++
	o := &opened{name: name, attr: map[string]string{}, seen: map[string]int{}}
	for _, a := range e.Attr {
		pattern, ok := r.attributes[a.Name.Local]
		if !ok || !regexp.MustCompile(`^(?s:`+pattern+`)$`).MatchString(a.Value) {
			return nil, fmt.Errorf("<%s %s=%q>", name, a.Name.Local, a.Value)
		}
		o.attr[a.Name.Local] = a.Value
	}
	for _, name := range r.required {
		if _, ok := o.attr[name]; !ok {
			return nil, fmt.Errorf("<%s> without %s", o.name, name)
		}
	}
	return o, nil
}

// leave compares a suite's counts with its cases.
func leave(o *opened) error {
	if o.name != "testsuite" {
		return nil
	}
	for attr, element := range map[string]string{"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"} {
		if n, _ := strconv.Atoi(o.attr[attr]); n != o.seen[element] {
			return fmt.Errorf("suite %s: %s=%d, but %d", o.attr["name"], attr, n, o.seen[element])
		}
	}
	return nil
}

func TestJUnitValidatorSees(t *testing.T) {
	good := rendered(t, "junit", everything())
	for _, tt := range [][2]string{
		{"<testcase ", "<testcase bad=\"1\" "}, {"tests=\"", "tests=\"9"}, {" classname=\"rdma-setup.measured\"", ""},
		{"<system-out>", "<system-out/><system-out>"},
		{"<failure ", "<skipped/><failure "}, {" type=\"check\"", ""}, {"timestamp=\"2026-", "timestamp=\"26-"}, {"</testsuites>", ""},
		{"<properties>", "text<properties>"},
	} {
		bad := strings.Replace(good, tt[0], tt[1], 1)
		if bad == good {
			t.Errorf("%q does not occur", tt[0])
		}
		if _, err := junitValid(bad); err == nil {
			t.Errorf("%q for %q passes", tt[1], tt[0])
		}
	}
}

func TestJUnitSaysWhatFailed(t *testing.T) {
	r := everything()
	r.Checks = append(r.Checks, checks.Finding{ID: "GST-PORT-001", Scope: "guest", Target: backends.GuestRef("vm-01"), Status: checks.Unknown,
		Evidence: "guest vm-01 cannot be reached"})
	r.Measurements = append(r.Measurements, perftest.Measurement{From: "vm-05", To: "vm-06", Test: perftest.SendBandwidth,
		Verdict: perftest.VerdictNotApplicable, Why: "both on one host"})
	doc := rendered(t, "junit", r)
	for _, want := range []string{
		`<testcase name="HOST-FW-PVRDMA-007 esx-02" classname="rdma-setup.checks" time="0">`,
		`<failure message="ruleset pvrdma is off" type="check">`, "remedy: Enable the firewall ruleset pvrdma.",
		`<error message="guest vm-01 cannot be reached" type="unknown">`, `<skipped message="it cannot be detected">`,
		`<skipped message="both on one host">`,
		`WARN HOST-POWER-009 esx-01: power policy dynamic`, `<failure message="21.4 Gb/s of 98.0 expected" type="measurement">`, "TCP fallback",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("%s is missing in\n%s", want, doc)
		}
	}
}

// A report whose verdict is bad is never green in CI, also where every row passed.
func TestJUnitIsNotGreenForABadVerdict(t *testing.T) {
	for name, r := range map[string]*report.Report{
		"the measurement failed to start": {Run: "run", Status: "done", Err: "no perftest", ErrExit: 4},
		"a rollback is not finished":      {Run: "run", Status: report.HalfRolledBack},
		"a bench that broke off":          {Command: report.Bench, Err: "vCenter is gone", ErrExit: 4},
	} {
		r.Checks = []checks.Finding{{ID: "HOST-CONN-001", Scope: "host", Target: backends.HostRef("esx-01"), Status: checks.Pass}}
		r.Measurements = []perftest.Measurement{{Test: "ib_send_bw", AchievedGbps: 97, ExpectedGbps: 98, Verdict: perftest.VerdictPass}}
		if said := rendered(t, "junit", r); !strings.Contains(said, "<failure") && !strings.Contains(said, "<error") {
			t.Errorf("%s: exit %d is green:\n%s", name, report.Decide(r).Exit, said)
		}
	}
}
