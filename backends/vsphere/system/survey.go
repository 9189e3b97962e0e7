package system

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/esxcli"
)

// drivers are the modules whose parameters matter: SR-IOV, PFC and ECN of ConnectX cards, DSCP of the host's own RDMA.
var drivers = []string{"nmlx5_core", "nmlx5_rdma"}

// Options bound a survey.
type Options struct {
	Parallel int           // hosts asked at once; 0: 16
	Limit    time.Duration // for one host; 0: 60 s
	Depots   []string      // files whose contents are wanted as each host sees them
}

// Survey asks hosts by esxcli what no property tells. Every host that was asked is in the answer; one that did not
// answer has the reason in Error, and what came until then.
func (s *System) Survey(ctx context.Context, hosts []string, o Options) map[string]*backends.HostSystem {
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	if o.Limit <= 0 {
		o.Limit = 60 * time.Second
	}
	out := make(map[string]*backends.HostSystem, len(hosts))
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(o.Parallel)
	for _, host := range hosts {
		g.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, o.Limit)
			defer cancel()
			sys := &backends.HostSystem{}
			if err := s.ask(limited, host, o.Depots, sys); err != nil {
				sys.Error = err.Error()
			}
			mu.Lock()
			out[host] = sys
			mu.Unlock()
			return nil
		})
	}
	_ = g.Wait() // nobody fails: errors stand at their hosts
	return out
}

// ask fills sys in as far as the host answers. What concerns its image is asked in turn: the image has one lock.
func (s *System) ask(ctx context.Context, host string, depots []string, sys *backends.HostSystem) error {
	var g errgroup.Group // one part that fails leaves the others
	g.Go(func() error { return s.modules(ctx, host, sys) })
	g.Go(func() (err error) {
		sys.VFs, err = s.virtualFunctions(ctx, host)
		return err
	})
	g.Go(func() error { return s.image(ctx, host, depots, sys) })
	g.Go(func() error {
		sys.Exceptions = s.exceptions(ctx, host)
		return nil
	})
	g.Go(func() (err error) {
		sys.Pause, err = s.pause(ctx, host)
		return err
	})
	return g.Wait()
}

func (s *System) image(ctx context.Context, host string, depots []string, sys *backends.HostSystem) error {
	now, next, err := s.vibs(ctx, host)
	if err != nil {
		return err
	}
	sys.VIBs, sys.NextVIBs = now, next
	rows, err := s.cli.Run(ctx, host, "software", "acceptance", "get")
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		sys.Acceptance = acceptance(rows[0]["output"])
	}
	for _, file := range depots {
		list, err := s.offers(ctx, host, file)
		if err != nil {
			list = []backends.Component{{Path: file, Error: err.Error()}}
		}
		sys.Offers = append(sys.Offers, list...)
	}
	return ctx.Err()
}

func (s *System) modules(ctx context.Context, host string, sys *backends.HostSystem) error {
	rows, err := s.cli.Run(ctx, host, "system", "module", "list")
	if err != nil {
		return err
	}
	sys.Modules = map[string]backends.Module{}
	for _, name := range drivers {
		row := find(rows, "Name", name)
		if row == nil {
			continue
		}
		m := backends.Module{Loaded: row["IsLoaded"] == "true"}
		if m.Known, m.Params, err = s.parameters(ctx, host, name); err != nil {
			return err
		}
		detail, err := s.cli.Run(ctx, host, "system", "module", "get", "-m", name)
		if err != nil {
			return err
		}
		if len(detail) > 0 {
			m.Version = detail[0]["Version"]
		}
		sys.Modules[name] = m
	}
	return nil
}

func find(rows []esxcli.Row, field, value string) esxcli.Row {
	for _, r := range rows {
		if r[field] == value {
			return r
		}
	}
	return nil
}

// virtualFunctions lists the VFs that exist, by pNIC. Before 8.0 their addresses are decimal.
func (s *System) virtualFunctions(ctx context.Context, host string) (map[string][]string, error) {
	nics, err := s.cli.Run(ctx, host, "network", "sriovnic", "list")
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, nic := range nics {
		rows, err := s.cli.Run(ctx, host, "network", "sriovnic", "vf", "list", "-n", nic["Name"])
		if err != nil {
			return nil, err
		}
		list := []string{}
		for _, r := range rows {
			if address := scan.PCI(r["PCIAddress"]); address != nil {
				list = append(list, *address)
			}
		}
		out[nic["Name"]] = list
	}
	return out, nil
}
