// Package system sets and reads the system settings of ESXi hosts: power policy, VFs and passthrough, the parameters of kernel
// modules and the VIBs of the image. Everything goes through vCenter, including esxcli; nothing needs SSH.
package system

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/esxcli"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A System gives access to the hosts of one vCenter. It is safe for concurrent use.
type System struct {
	conn   *wire.Conn
	places *place.Places
	cli    *esxcli.CLI

	mu     sync.Mutex
	depots []string
}

// New returns the System of a vCenter's hosts.
func New(conn *wire.Conn, places *place.Places, cli *esxcli.CLI) *System {
	return &System{conn: conn, places: places, cli: cli}
}

// Setters returns the setters of every kind of setting of the hosts' systems.
func (s *System) Setters() map[backends.Kind]backends.Setter {
	return map[backends.Kind]backends.Setter{
		backends.KindPower:             powerSetter{s},
		backends.KindVFs:               vfSetter{passthru{s}},
		backends.KindActiveVFs:         activeSetter{passthru{s}},
		backends.KindPassthrough:       passthroughSetter{passthru{s}},
		backends.KindActivePassthrough: passedSetter{passthru{s}},
		backends.KindGraphics:          graphicsSetter{s},
		backends.KindActiveGraphics:    activeGraphicsSetter{graphicsSetter{s}},
		backends.KindModuleParams:      moduleSetter{s},
		backends.KindPause:             pauseSetter{s},
		backends.KindComponent:         componentSetter{s},
	}
}

// Options are the limits of a survey and what it reads.
type Options struct {
	Ask      []Question
	Parallel int                      // hosts queried in parallel; 0: 16
	Limit    time.Duration            // per host; 0: 60 s
	Depots   []string                 // files whose contents are read as each host sees them
	PNICs    map[string][]string      // by host: the pNICs whose counters, DCB and VFs are read
	VMKNic   func(host string) string // the vmknic that pings its peers
}

// Survey reads facts that no property contains into the System of the hosts. Facts that were read before are not read again. Each
// fact that could not be read has the reason.
func (s *System) Survey(ctx context.Context, hosts []*backends.Host, o Options) {
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	if o.Limit <= 0 {
		o.Limit = 60 * time.Second
	}
	for _, h := range hosts {
		h.System = cmp.Or(h.System, &backends.HostSystem{})
	}
	backends.InParallel(slices.All(hosts), o.Parallel, func(i int, h *backends.Host) {
		limited, cancel := context.WithTimeout(ctx, o.Limit)
		defer cancel()
		a := &asking{System: s, host: h, sys: h.System, o: o, peers: neighbours(hosts, i)}
		a.all(limited)
	})
}

// neighbours returns the two hosts after host i, in a ring: every host is pinged by two others, whatever their number.
func neighbours(hosts []*backends.Host, i int) []*backends.Host {
	var out []*backends.Host
	for k := 1; k <= 2 && k < len(hosts); k++ {
		out = append(out, hosts[(i+k)%len(hosts)])
	}
	return out
}

// asking is the state of reading one host.
type asking struct {
	*System
	host  *backends.Host
	sys   *backends.HostSystem
	o     Options
	peers []*backends.Host
}

// all runs the requested questions concurrently. Those about the image run one at a time, because it has a lock.
func (a *asking) all(ctx context.Context) {
	wanted := map[Question]bool{}
	for _, q := range a.o.Ask {
		wanted[q] = true
	}
	var image sync.Mutex
	var g errgroup.Group
	var after func(context.Context)
	if wanted[Versions] {
		a.versions(ctx)
	}
	for _, q := range questions {
		switch {
		case q.name == Versions:
		case !wanted[q.name] || q.asked(a.sys):
		case q.name == Counters: // the other questions run between its two samples
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
