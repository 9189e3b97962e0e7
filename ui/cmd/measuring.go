package cmd

import (
	"fmt"
	"time"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

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
				fmt.Fprintf(r.env.Stderr, "%s: %s: the two may not understand each other\n", plain.Clean(p.Pair.String()), plain.Clean(d))
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
	case m.AchievedGbps > 0:
		return fmt.Sprintf("%.1f Gb/s, %s", m.AchievedGbps, m.Verdict)
	case m.AchievedUs > 0:
		return fmt.Sprintf("%.2f us, %s", m.AchievedUs, m.Verdict)
	}
	return string(m.Verdict)
}

func measuredBadly(all []perftest.Measurement) bool {
	for _, m := range all {
		if m.Verdict == perftest.VerdictFail {
			return true
		}
	}
	return false
}
