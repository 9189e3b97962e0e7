package perftest

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// idleGap is how long a port is watched while nothing is measured, and how long a test's own bytes may take to be counted. Adapters
// count when they are asked (mlx5: drivers/infiniband/hw/mlx5/mad.c, query_vport_counter and PPCNT) or write their counters to memory
// once a second (drivers/net/ethernet/broadcom/bnxt/bnxt.h, BNXT_DEF_STATS_COAL_TICKS). How often ESXi's drivers do is unverified.
const idleGap = time.Second

// wait is idleGap as a guest's command: a rehearsal and the lab then know how long it takes.
const wait = "sleep 1"

// idle reads the counters of both ends twice while no test runs, and returns what passed their ports in Gb/s. Whatever it is, it is
// traffic of others, so that counters count too of which is not known whether they contain the test's: nil if nothing was seen and
// not all that passes the ports could be read, or if one was not read. tail is true if a test may have just ended at these ports; meanwhile
// runs in between.
func (r *Runner) idle(ctx context.Context, p Pair, tail bool, meanwhile func()) *float64 {
	if !r.Loss && r.HostCounters == nil || p.SameHost() || p.Refusal() != "" || p.Client.Device == "" || p.Server.Device == "" {
		meanwhile()
		return nil
	}
	sleep := func() error {
		_, err := r.Shell.Exec(ctx, p.Client.VM, Command{Line: wait})
		return err
	}
	if tail && sleep() != nil {
		meanwhile()
		return nil
	}
	before, began, slept := r.watched(ctx, p), time.Now(), make(chan error, 1)
	go func() { slept <- sleep() }()
	meanwhile()
	failed := <-slept
	after := r.watched(ctx, p)
	took := max(time.Since(began), idleGap)
	if failed != nil {
		return nil
	}
	whole, most := true, int64(0)
	for _, end := range [][2]Counters{{before.From, after.From}, {before.To, after.To}} {
		moved, all := Counters{}, false
		for name, now := range end[1] {
			if was, ok := end[0][name]; ok && now >= was {
				moved[name] = now - was
				all = all || strings.HasPrefix(name, "pnic_rdma_") || perPriority.MatchString(name)
			}
		}
		for _, way := range []string{"tx", "rx"} {
			n, ok := moved.carried(way)
			whole, most = whole && ok, max(most, n)
		}
		whole = whole && all
	}
	gbps := worth(most, took.Seconds(), p.linkMbps())
	if gbps == 0 && !whole {
		return nil
	}
	return &gbps
}

// watched reads the counters of both ends anew, with those that only an idle port shows. The former are those before the next test.
func (r *Runner) watched(ctx context.Context, p Pair) Sides {
	backends.ReadsOf(ctx).Forget()
	s := r.both(ctx, p)
	s.From, s.To = maps.Clone(s.From), maps.Clone(s.To)
	if r.HostIdle == nil {
		return s
	}
	done := make(chan struct{})
	add := func(c Counters, n Node) {
		if n.Host == "" || n.Port == "" {
			return
		}
		more, _ := r.HostIdle(ctx, n.Host, n.Port) // unread is unknown
		for name, v := range more {
			c["pnic_"+name] = v
		}
	}
	go func() {
		defer close(done)
		add(s.To, p.Server)
	}()
	add(s.From, p.Client)
	<-done
	return s
}

// worse joins two idle windows: a load in one of them is a load, and none is none only in both.
func worse(a, b *float64) *float64 {
	load := 0.0
	for _, w := range []*float64{a, b} {
		if w != nil {
			load = max(load, *w)
		}
	}
	if load == 0 && (a == nil || b == nil) {
		return nil
	}
	return &load
}

// idleLoad returns the traffic in the idle windows; 0 if there was none worth a word, or it is not known.
func (m *Measurement) idleLoad() float64 {
	if m.IdleGbps == nil {
		return 0
	}
	return *m.IdleGbps
}

// suspect reports whether traffic of others may be why a test is bad.
func (m *Measurement) suspect() bool {
	return (m.Verdict == VerdictWarn || m.Verdict == VerdictFail || m.Verdict == VerdictUnknown) &&
		(m.Error == "" || strings.Contains(m.Hint, "loss"))
}
