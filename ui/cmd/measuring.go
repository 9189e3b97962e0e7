package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// consentToMeasure determines whether a run without changes measures, which loads the fabric and was not announced by the plan.
// --measure decides; --yes consents; on a terminal it asks; otherwise nothing is measured.
func (r *runner) consentToMeasure(p *planned) error {
	few, _ := limited(r.a, p.inv, r.flags.limit)
	if r.measure != nil || few.Measure.Pairs == "none" || !few.Measure.Bandwidth && !few.Measure.Latency || len(few.VMs) < 2 {
		return nil
	}
	yes := r.yes
	if !yes && r.env.Terminal() {
		var err error
		if yes, err = r.env.Confirm("Measure between " + plain.Counted(len(few.VMs), "VM") + " now, which loads the fabric"); err != nil {
			return err
		}
		if yes {
			r.loads = r.said
		}
	}
	if !yes {
		fmt.Fprintln(r.env.Stderr, "Not measured: this loads the fabric. Add --measure, or run `rdma-setup bench`.")
	}
	r.measure = &yes
	return nil
}

// consentToLoad prints what loading the fabric after the changes will cost, before the plan is confirmed, and refuses if it
// cannot ask: then nothing is changed or measured.
func (r *runner) consentToLoad(p *planned) error {
	few, _ := limited(r.a, p.inv, r.flags.limit)
	if r.measure != nil && !*r.measure || r.measure == nil && p.plan.Empty() && !r.yes && !r.env.Terminal() {
		return nil // nothing is measured
	}
	plans := session.LoadPlans(few, p.inv)
	if len(plans) == 0 || r.yes || r.s.Simulated() {
		return nil
	}
	if !r.env.Terminal() {
		return errNoConsent()
	}
	fmt.Fprintln(r.env.Stderr, "measure.load: afterwards the fabric is loaded with several senders:")
	for _, p := range plans {
		fmt.Fprintln(r.env.Stderr, plain.LoadLine(p))
	}
	r.said = plans
	return nil
}

// covers reports whether loads cost about as much as was stated before the question.
func covers(agreed, plans []perftest.LoadPlan) bool {
	for _, p := range plans {
		if !slices.ContainsFunc(agreed, func(said perftest.LoadPlan) bool {
			return said.Load == p.Load && float64(p.Bytes) <= 1.2*float64(said.Bytes) && float64(p.Seconds) <= 1.2*float64(said.Seconds)
		}) {
			return false
		}
	}
	return len(plans) > 0
}

// measured measures between the VMs of the run: those on the hosts of --limit at planning time, even if DRS has moved one since.
// The survey that ended the run is not repeated, unless --limit makes the two differ.
func (r *runner) measured(ctx context.Context, p *planned, res engine.Result) ([]perftest.Measurement, error) {
	if r.measure != nil && !*r.measure {
		return nil, nil
	}
	few, _ := limited(r.a, p.inv, r.flags.limit)
	var inv *backends.Inventory
	if res.Reread && len(r.flags.limit) == 0 {
		inv = r.s.Last(nil)
	}
	r.s.Patience, r.s.Stop = r.flags.operation, r.stop
	m, err := r.s.Measure(ctx, few, inv, few.Measure.Pairs, r.progress())
	if loads := perftest.Loads(few.Measure.Load); err == nil && len(loads) > 0 {
		var more []perftest.Measurement
		more, err = r.s.Load(ctx, few, loads, r.loading())
		m = append(m, more...)
		if backends.KindOf(err) == backends.KindRefused {
			fmt.Fprintf(r.env.Stderr, "note: not loaded: %v\n", err)
			err = nil
		}
	}
	if err == nil && len(m) == 0 && !r.json && len(r.flags.limit) > 0 && len(few.VMs) < 2 {
		fmt.Fprintf(r.env.Stderr, "note: %s\n", noPair(few, r.flags.limit))
	}
	return m, err
}

// loading asks before the fabric is loaded with several senders, unless --yes is set or the fabric is a lab's, and prints each
// round when it ends.
func (r *runner) loading() session.Loading {
	return session.Loading{
		Stop: r.stop,
		Agree: func(plans []perftest.LoadPlan) (bool, error) {
			for _, p := range plans {
				if r.json {
					_ = plain.JSON(r.env.Stdout).Encode(struct {
						Event string `json:"event"`
						perftest.LoadPlan
					}{"loading", p})
					continue
				}
				fmt.Fprintln(r.env.Stderr, plain.LoadLine(p))
			}
			switch {
			case r.yes || r.s.Simulated() || covers(r.loads, plans):
				return true, nil
			case r.env.Terminal():
				return r.env.Confirm("Load the fabric like this now")
			}
			return false, errNoConsent()
		},
		Told: func(p perftest.Progress) {
			if r.json {
				if p.Flows == nil {
					_ = plain.JSON(r.env.Stdout).Encode(struct {
						Event   string `json:"event"`
						Load    string `json:"load"`
						Round   int    `json:"round"`
						All     int    `json:"rounds"`
						Senders int    `json:"senders"`
						Seconds int    `json:"left_seconds"` // estimated
					}{"loading_round", p.Load, p.Round, p.Rounds, p.Pairs, int(p.Left.Seconds())})
				}
				for _, m := range p.Flows {
					_ = plain.JSON(r.env.Stdout).Encode(struct {
						Event string               `json:"event"`
						Round int                  `json:"round"`
						All   int                  `json:"rounds"`
						M     perftest.Measurement `json:"measurement"`
					}{"loaded", p.Round, p.Rounds, m})
				}
				return
			}
			fmt.Fprintln(r.env.Stderr, plain.LoadRound(p))
		},
	}
}

func errNoConsent() error {
	return console.Usage("add --yes, or leave --load and measure.load out",
		"loading a fabric with several senders needs your consent, and there is no terminal")
}

// noPair returns why a limited run measures nothing.
func noPair(few *answers.Answers, limit []string) string {
	return fmt.Sprintf("no pair to measure: --limit %s leaves only %s of the answers", strings.Join(limit, ","),
		plain.Counted(len(few.VMs), "VM"))
}

// progress prints the tests to run, then each test when it ends.
func (r *runner) progress() func(perftest.Progress) {
	announced := false
	return func(p perftest.Progress) {
		if !announced {
			announced = true
			r.announce(p)
		}
		if p.Result == nil {
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
		_ = plain.Printf(r.env.Stderr, "measured %d/%d  %s  %s: %s%s\n", p.Done, p.Total, p.Test, p.Pair.String(), figure(*p.Result),
			left(p))
	}
}

// announce prints the cost of the measurement before it begins.
func (r *runner) announce(p perftest.Progress) {
	took, bytes := perftest.CrossCost(p.Between)
	if r.json {
		_ = plain.JSON(r.env.Stdout).Encode(struct {
			Event        string `json:"event"`
			Pairs        int    `json:"pairs"`
			Rounds       int    `json:"rounds"`
			Tests        int    `json:"tests"`
			Seconds      int    `json:"seconds"` // about
			Between      int    `json:"cross_rail_tests,omitempty"`
			BetweenTime  int    `json:"cross_rail_seconds,omitempty"` // about
			BetweenBytes int    `json:"cross_rail_bytes,omitempty"`
			Bonds        int    `json:"all_rails_tests,omitempty"`
			BondTime     int    `json:"all_rails_seconds,omitempty"` // about
		}{"measuring", p.Pairs, p.Rounds, p.Total, int(p.Left.Seconds()), p.Between, int(took.Seconds()), bytes, p.Bonds,
			int(p.BondTime.Seconds())})
		return
	}
	fmt.Fprintf(r.env.Stderr, "measuring %s in %s, %s: about %s; the fabric is loaded meanwhile\n",
		plain.Counted(p.Pairs, "pair"), plain.Counted(p.Rounds, "round"), plain.Counted(p.Total, "test"), plain.About(p.Left))
	if p.Bonds > 0 {
		fmt.Fprintf(r.env.Stderr, "then %s of all rails at once: about %s\n", plain.Counted(p.Bonds, "test"), plain.About(p.BondTime))
	}
	if p.Between > 0 {
		fmt.Fprintf(r.env.Stderr, "then %s between rails: about %s, %d bytes of ARP requests\n", plain.Counted(p.Between, "test"),
			plain.About(took), bytes)
	}
}

// left returns the estimated remaining time, if it is worth mentioning.
func left(p perftest.Progress) string {
	if p.Left < 5*time.Second {
		return ""
	}
	return "; about " + plain.About(p.Left) + " left"
}

func figure(m perftest.Measurement) string {
	switch {
	case m.Error != "":
		return backends.Clean(m.Error)
	case m.Instead != "":
		return m.Figure() + ", not judged: " + m.Why
	case m.Figure() != "":
		return m.Figure() + ", " + string(m.Verdict)
	}
	return string(m.Verdict)
}
