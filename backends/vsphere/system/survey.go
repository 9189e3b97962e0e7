package system

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Options bound a survey and say what it asks.
type Options struct {
	Ask      []Question
	Parallel int                      // hosts asked at once; 0: 16
	Limit    time.Duration            // for one host; 0: 60 s
	Depots   []string                 // files whose contents are wanted as each host sees them
	PNICs    map[string][]string      // by host: the pNICs whose counters, DCB and VFs are wanted
	VMKNic   func(host string) string // the vmknic that pings its peers
}

// Survey asks hosts what no property tells, and puts it into their System. What was asked of a host before is not asked
// again. Every fact says itself why it could not be read.
func (s *System) Survey(ctx context.Context, hosts []*backends.Host, o Options) {
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	if o.Limit <= 0 {
		o.Limit = 60 * time.Second
	}
	var g errgroup.Group
	g.SetLimit(o.Parallel)
	for i, h := range hosts {
		if h.System == nil {
			h.System = &backends.HostSystem{}
		}
		g.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, o.Limit)
			defer cancel()
			a := &asking{System: s, host: h, sys: h.System, o: o, peers: neighbours(hosts, i)}
			a.all(limited)
			return nil
		})
	}
	_ = g.Wait() // nobody fails: errors stand at their facts
}

// neighbours are the two hosts after host i, in a ring: every host is pinged from two sides, whatever their number.
func neighbours(hosts []*backends.Host, i int) []*backends.Host {
	var out []*backends.Host
	for k := 1; k <= 2 && k < len(hosts); k++ {
		out = append(out, hosts[(i+k)%len(hosts)])
	}
	return out
}

// asking is one host while it is asked.
type asking struct {
	*System
	host  *backends.Host
	sys   *backends.HostSystem
	o     Options
	peers []*backends.Host
}

// all asks the wanted questions side by side. Those about the image wait for each other: the image has one lock.
func (a *asking) all(ctx context.Context) {
	wanted := map[Question]bool{}
	for _, q := range a.o.Ask {
		wanted[q] = true
	}
	var image sync.Mutex
	var g errgroup.Group
	var after func(context.Context)
	for _, q := range questions {
		switch {
		case !wanted[q.name] || q.asked(a.sys):
		case q.name == Counters: // the others are asked between its two looks
			after = a.counters(ctx)
		default:
			g.Go(func() error {
				if q.image {
					image.Lock()
					defer image.Unlock()
				}
				q.ask(a, ctx)
				return nil
			})
		}
	}
	_ = g.Wait()
	if after != nil {
		after(ctx)
	}
}
