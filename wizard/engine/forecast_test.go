package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A forecast has the times of a run whose operations take as long: the run is a real one, in a bubble with simulated time.
func TestForecastIsTheRun(t *testing.T) {
	const d = time.Minute
	for name, limits := range map[string]engine.Limits{
		"all at once": {}, "one by one": {VMsOff: 1}, "three at a time": {VMsOff: 3}, "few at a time": {VMsOff: 5, Parallel: 2},
	} {
		for _, fails := range []string{"", "vm-04"} {
			t.Run(name+fails, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := cycles(10)
					for i := range p.Brackets[:4] {
						p.Brackets[i].Apart = []string{"db"}
					}
					w := NewWorld()
					w.Before = brackets(t, d)
					if fails != "" {
						w.Fault = func(c Call) error {
							if c.Verb == "close" && c.Setting.Target.Name == fails {
								return backends.Errorf(backends.KindPermanent, fails, "", "it does not start")
							}
							return nil
						}
					}
					began := time.Now()
					var want, got []string
					note := func(to *[]string, e engine.Event, since time.Duration) {
						if e.Type == engine.EventStarted || e.Type == engine.EventDone || e.Type == engine.EventFailed {
							*to = append(*to, fmt.Sprintf("%8s %s %s", since, e.Type, e.Node))
						}
					}
					job, j := planned(t, w, p)
					job.Limits, job.Replan = limits, nil
					job.Sink = func(e engine.Event) { note(&want, e, e.Time.Sub(began)) }
					if _, err := engine.Run(t.Context(), job); err != nil {
						t.Fatal(err)
					}
					_ = j.Close()
					again, err := engine.Forecast{
						Stages: []plan.Plan{p}, Limits: limits,
						Took: func(_ int, node string) time.Duration {
							if strings.HasSuffix(node, "/vm-power") {
								return d
							}
							return 0
						},
						Ended: func(_ int, node string) engine.NodeState {
							if fails != "" && node == "vm/"+fails+"/vm-power" {
								return engine.NodeFailed
							}
							return engine.NodeDone
						},
					}.Events()
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range again {
						note(&got, e, e.Time.Sub(time.Unix(0, 0)))
					}
					// Events at the same instant have no order.
					slices.Sort(want)
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Errorf("forecast:\n%s\nthe run:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
					}
				})
			})
		}
	}
}

// The estimate on the plan page equals the first estimate on the run page.
func TestExpectedIsWhatTheRunForecastsFirst(t *testing.T) {
	for name, limits := range map[string]engine.Limits{"all at once": {}, "one by one": {VMsOff: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cycles(10)
				w := NewWorld()
				w.Before = brackets(t, time.Second)
				job, j := planned(t, w, p)
				defer j.Close()
				first := time.Duration(0)
				job.Limits, job.Replan = limits, nil
				job.Sink = func(e engine.Event) {
					if e.Type == engine.EventForecast && first == 0 {
						first = e.Left
					}
				}
				want, err := engine.Expected(job, &p)
				if err != nil || want < time.Duration(plan.MinutesOut(backends.BracketVMPower))*time.Minute {
					t.Fatal(want, err)
				}
				if _, err := engine.Run(t.Context(), job); err != nil {
					t.Fatal(err)
				}
				if first != want {
					t.Errorf("the plan says %s, the run %s", want, first)
				}
			})
		})
	}
}

// A plan for 100 hosts: one reboot each, and 200 VMs that are powered off.
func BenchmarkExpected(b *testing.B) {
	p := cycles(200)
	for i := range 100 {
		host := backends.HostRef(fmt.Sprintf("esx-%03d", i+1))
		br := plan.Bracket{Kind: backends.BracketReboot, Target: host}
		p.Brackets = append(p.Brackets, br)
		p.Changes = append(p.Changes, change(setting(host, backends.KindOption, "Net.PVRDMAVmknic"), backends.Absent, val(i), br.ID()))
	}
	w := NewWorld()
	job := engine.Job{Plan: p, Setters: w.Setters(), Brackets: w.Brackets(), Limits: engine.Limits{HostsDown: 1, VMsOff: 4}}
	for b.Loop() {
		if d, err := engine.Expected(job, &p); err != nil || d < time.Hour {
			b.Fatal(d, err)
		}
	}
}
