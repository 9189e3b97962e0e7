// Package page arranges a report for reading: grouped, ordered and counted, with curves and maps laid out, and every text cleaned
// of characters that could control a terminal or change the direction of a line. Package render writes it as HTML or Markdown.
package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A Page is a report in reading order, from top to bottom. Sections without content are empty.
type Page struct {
	Title      string
	Verdict    string
	Status     checks.Status
	Simulated  bool
	Insecure   []string      // what was not verified
	LeftBehind []string      // what an unfinished run has left behind, one line each
	Continue   string        // the command that continues it
	Causes     []plain.Cause // failures with their errors and remedies
	MoreCauses int           // how many causes Causes omits
	Facts      []Fact
	Chain      []Link

	PairTally string // "8 of 8 pairs at expected line rate"
	Worst     []Pair // the worst pairs of each test
	Tests     []Test
	Load      []Table // of several senders at once; one table, or none

	NCCL    []string // NAME=VALUE
	NCCLWhy []string

	CheckTally string
	Amiss      []Group // fail, warn, unknown: by severity, then by place in the chain
	Folded     []Group // consequences of the causes
	Passed     []Group
	Waiting    []Group // quiet: cannot be detected, waits for confirmation, or has an unverified limit

	ChangeTally string
	Changes     []Changes

	Environment []Table
	Method      []Fact
	Notes       []string
}

// A Fact is a line with a label.
type Fact struct{ Label, Text string }

// A Table has row headings in its first column.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]string
}

// A Link is a link of the chain.
type Link struct {
	Name   string
	Status checks.Status
	Tally  string // "12 passed, 1 failed"
	First  string // the first problem; "" if there is none
	Remedy string // of the first problem
	Broken bool   // the first broken link of the chain: start here if no cause is listed above
}

// Of arranges a report.
func Of(r *report.Report) *Page {
	v := report.Decide(r)
	causes := r.Causes()
	p := &Page{
		Title: "RDMA report", Verdict: v.Summary, Status: v.Mark(), Simulated: r.Simulated,
		Chain: chain(r, v.Chain, len(causes) > 0), Environment: environment(backends.Shown(r.Environment)), Method: method(r.Measurements),
		Insecure: r.Insecure, Notes: r.Notes,
	}
	if r.Run != "" {
		p.Title = "RDMA report of run " + r.Run
		p.fact("run", r.Run+", "+r.Status)
	}
	p.fact("verdict", v.Line())
	p.fact("mode", r.Mode)
	p.fact("vCenter", r.VCenter)
	p.fact("made", r.Made.Format("2006-01-02 15:04:05 -0700"))
	p.fact("tool", "rdma-setup "+r.Tool)
	p.LeftBehind, p.Continue = plain.LeftBehind(r.LeftBehind)
	p.Causes, p.MoreCauses = plain.Causes(causes)
	if len(r.Checks) > 0 {
		p.CheckTally = plain.Tally(r.Checks)
		own, _ := plain.Unexplained(r.Checks, causes)
		p.Amiss, p.Passed, p.Waiting = groups(own)
		for _, c := range causes {
			folded, _, _ := groups(c.Consequences)
			p.Folded = append(p.Folded, folded...)
		}
	}
	if len(r.Measurements) > 0 {
		same := perftest.SameRail(r.Measurements)
		p.PairTally, p.Worst, p.Tests = pairTally(same), worstPairs(same), tests(same)
		p.Load = append(loaded(r.Measurements), railMatrix(r.Measurements)...)
	}
	if n := r.NCCL; n != nil {
		p.NCCL = plain.Mapped(n.Env, report.Variable.String)
		p.NCCLWhy = n.Why
	}
	if len(r.Changes) > 0 {
		p.ChangeTally, p.Changes = changes(r.Changes)
	}
	return backends.Shown(p)
}

func (p *Page) fact(label, text string) {
	if text != "" {
		p.Facts = append(p.Facts, Fact{label, text})
	}
}

// chain arranges the chain of the verdict.
func chain(r *report.Report, links []checks.Link, caused bool) []Link {
	if len(r.Checks) == 0 && len(r.Measurements) == 0 {
		return nil
	}
	var out []Link
	first := catalogue.FirstBroken(r.Checks)
	for _, l := range links {
		if l.Worst == checks.NotApplicable {
			continue
		}
		link := Link{Name: string(l.Name), Status: l.Worst, Tally: tally(l.Count)}
		if l.First != nil {
			link.First = fmt.Sprintf("%s %s: %s", l.First.ID, l.First.Target.Name, l.First.Evidence)
			link.Remedy = l.First.Remedy
			link.Broken = !caused && first != nil && first.Status != checks.Unknown && first == l.First
		}
		out = append(out, link)
	}
	return out
}

func tally(n map[checks.Status]int) string {
	var said []string
	for _, w := range []struct {
		status checks.Status
		word   string
	}{{checks.Pass, "passed"}, {checks.Warn, "warned"}, {checks.Fail, "failed"}, {checks.Unknown, "unknown"}, {checks.NotRead, "not read"}} {
		if n[w.status] > 0 {
			said = append(said, fmt.Sprintf("%d %s", n[w.status], w.word))
		}
	}
	return cmp.Or(strings.Join(said, ", "), "not checked")
}

// severity orders statuses, the worst highest.
func severity(s checks.Status) int {
	return map[checks.Status]int{checks.Fail: 4, checks.Warn: 3, checks.Unknown: 2, checks.Pass: 1}[s]
}

// A Group is the findings of one check with one status.
type Group struct {
	Status   checks.Status
	ID       string
	Link     string // place in the chain
	Targets  string
	Evidence []string
	Remedy   string
	Source   string
	Fix      string
}

// groups sorts findings into problems (worst first, then along the chain), passes and waiting ones.
func groups(all []checks.Finding) (amiss, passed, waiting []Group) {
	where, place := map[string]string{}, map[string]int{}
	for _, c := range catalogue.Checks() {
		where[c.ID], place[c.ID] = string(c.Link), slices.Index(checks.Links(), c.Link)
	}
	for _, status := range []checks.Status{checks.Fail, checks.Warn, checks.Unknown, checks.Pass} {
		from := len(amiss)
		for _, quiet := range []bool{false, true} {
			some := slices.DeleteFunc(slices.Clone(all), func(f checks.Finding) bool { return f.Status == status && f.Quiet != quiet })
			for _, g := range plain.Grouped(some, status) {
				f := g.Findings[0]
				shown := Group{
					Status: f.Status, ID: f.ID, Link: where[f.ID], Targets: g.Targets(), Evidence: g.Evidence(),
					Remedy: f.Remedy, Source: f.Source, Fix: f.Fix,
				}
				switch {
				case status == checks.Pass:
					passed = append(passed, shown)
				case quiet:
					waiting = append(waiting, shown)
				default:
					amiss = append(amiss, shown)
				}
			}
		}
		slices.SortStableFunc(amiss[from:], func(a, b Group) int { return place[a.ID] - place[b.ID] })
	}
	return amiss, passed, waiting
}
