package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// consentToMeasure settles whether a run without changes measures: a measurement loads the fabric, and nothing that was
// printed has said so. --measure decides; --yes agrees; on a terminal it asks; else nothing is measured.
func (r *runner) consentToMeasure(p *planned) error {
	few, _ := limited(r.a, p.inv, r.flags.limit)
	if r.measure != nil || few.Measure.Pairs == "none" || !few.Measure.Bandwidth && !few.Measure.Latency || len(few.VMs) < 2 {
		return nil
	}
	yes := r.yes
	if !yes && r.env.Terminal() {
		var err error
		if yes, err = r.env.Confirm("Measure between " + counted(len(few.VMs), "VM") + " now, which loads the fabric"); err != nil {
			return err
		}
	}
	if !yes {
		fmt.Fprintln(r.env.Stderr, "Not measured: this loads the fabric. Add --measure, or run `rdma-setup bench`.")
	}
	r.measure = &yes
	return nil
}

// measured measures between the VMs of the run: those on the hosts of --limit, as they were when the plan was made, also
// where DRS has moved one since.
func (r *runner) measured(ctx context.Context, p *planned) ([]perftest.Measurement, error) {
	if r.measure != nil && !*r.measure {
		return nil, nil
	}
	few, _ := limited(r.a, p.inv, r.flags.limit)
	m, err := r.s.Measure(ctx, few, few.Measure.Pairs, r.progress())
	if err == nil && len(m) == 0 && !r.json && len(r.flags.limit) > 0 && len(few.VMs) < 2 {
		fmt.Fprintf(r.env.Stderr, "note: %s\n", noPair(few, r.flags.limit))
	}
	return m, err
}

// noPair says why a limited run measures nothing.
func noPair(few *answers.Answers, limit []string) string {
	return fmt.Sprintf("no pair to measure: --limit %s leaves only %s of the answers", strings.Join(limit, ","), counted(len(few.VMs), "VM"))
}

// progress says what is going to be measured, then shows each test as it ends.
func (r *runner) progress() func(perftest.Progress) {
	announced, warned := false, map[string]bool{}
	return func(p perftest.Progress) {
		if !announced {
			announced = true
			r.announce(p)
		}
		if p.Result == nil {
			if d := p.Pair.Differing(); d != "" && !r.json && !warned[p.Pair.String()] {
				warned[p.Pair.String()] = true
				fmt.Fprintf(r.env.Stderr, "%s: %s: the two may be incompatible\n", plain.Clean(p.Pair.String()), plain.Clean(d))
			}
			return
		}
		if r.json {
			_ = plain.JSON(r.env.Stdout).Encode(struct {
				Event string               `json:"event"`
				Done  int                  `json:"done"`
				Total int                  `json:"total"`
				M     perftest.Measurement `json:"measurement"`
			}{"measured", p.Done, p.Total, *p.Result})
			return
		}
		fmt.Fprintf(r.env.Stderr, "measured %d/%d  %s  %s: %s%s\n", p.Done, p.Total, p.Test, plain.Clean(p.Pair.String()), figure(*p.Result), left(p))
	}
}

// announce tells what the measurement costs before it begins.
func (r *runner) announce(p perftest.Progress) {
	if r.json {
		_ = plain.JSON(r.env.Stdout).Encode(struct {
			Event   string `json:"event"`
			Pairs   int    `json:"pairs"`
			Rounds  int    `json:"rounds"`
			Tests   int    `json:"tests"`
			Seconds int    `json:"seconds"` // about
		}{"measuring", p.Pairs, p.Rounds, p.Total, int(p.Left.Seconds())})
		return
	}
	fmt.Fprintf(r.env.Stderr, "measuring %s in %s, %s: about %s; the fabric is loaded meanwhile\n",
		counted(p.Pairs, "pair"), counted(p.Rounds, "round"), counted(p.Total, "test"), about(p.Left))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// left is how long it will still take, where that is worth a word.
func left(p perftest.Progress) string {
	if p.Left < 5*time.Second {
		return ""
	}
	return "; about " + about(p.Left) + " left"
}

// about rounds a time to what an estimate is worth.
func about(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(1, int(d.Round(time.Second).Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
}

func figure(m perftest.Measurement) string {
	switch {
	case m.Error != "":
		return plain.Clean(m.Error)
	case m.Figure() != "":
		return m.Figure() + ", " + string(m.Verdict)
	}
	return string(m.Verdict)
}

func measuredBadly(all []perftest.Measurement) bool {
	for _, m := range all {
		if m.Verdict == perftest.VerdictFail {
			return true
		}
	}
	return perftest.Disproven(all)
}
