package guest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// differs says how the interfaces that a file configures differ from before, except the interface ours ("": none): what decides for them,
// and what is active. Not compared are interfaces that no file names (of containers and tunnels), temporary addresses and metrics, and of
// DHCP anything but that there is a lease.
func (n *network) differs(before *network, ours string) []string {
	var list []string
	if before.powered {
		before = before.present(n)
	}
	if before.shared == nil { // else the stanzas of others become again what they were
		list = netconf.Difference(before.inForce(), n.inForce(), ours)
	}
	if n.refusal != nil && before.refusal == nil {
		list = append(list, n.refusal.Error())
	}
	for _, was := range before.interfaces {
		c, ok := before.of(was.Name)
		if !ok || was.Name == ours || c.Unmanaged {
			continue
		}
		at := slices.IndexFunc(n.interfaces, func(i backends.Interface) bool { return i.Name == was.Name && i.Virtual == was.Virtual })
		if at < 0 {
			list = append(list, was.Name+" is missing")
			continue
		}
		is := n.interfaces[at]
		note := func(differs bool, format string, args ...any) {
			if differs {
				list = append(list, was.Name+" "+fmt.Sprintf(format, args...))
			}
		}
		note(was.MTU == cmp.Or(c.MTU, 1500) && was.MTU != is.MTU, "has MTU %d, and had %d", is.MTU, was.MTU)
		note(c.Master == before.master[was.Name] && c.Master != n.master[was.Name], "is a member of %q, and was of %q", n.master[was.Name],
			c.Master)
		note(was.DHCP && !is.DHCP, "has no lease")
		for _, a := range was.Addresses {
			note(slices.Contains(c.Addresses, a) && !slices.Contains(is.Addresses, a), "has no longer %s", a)
		}
		for _, r := range before.routes[was.Name] {
			to, via, _ := strings.Cut(r, " ")
			note(slices.Contains(c.Routes, to+" via "+via) && !slices.Contains(n.routes[was.Name], r), "has no longer the route %s", r)
		}
	}
	return list
}

// withoutOurs returns a network without the interfaces that this program configures.
func (n *network) withoutOurs() *network {
	others := n.without(func(i backends.Interface) bool {
		c, _ := n.of(i.Name)
		_, ours := backends.NetFileOf(c.File)
		return ours
	})
	others.powered = true
	return others
}

// without returns a network without some interfaces.
func (n *network) without(drop func(backends.Interface) bool) *network {
	others := *n
	others.interfaces = slices.DeleteFunc(slices.Clone(n.interfaces), drop)
	others.force = slices.DeleteFunc(slices.Clone(n.inForce()), func(e netconf.Effective) bool {
		return slices.ContainsFunc(n.interfaces, func(i backends.Interface) bool { return i.Name == e.Link && drop(i) })
	})
	return &others
}

// present returns a network without the cards that another one does not have, because a run that powers a VM off may remove its adapter,
// and without those that had no configuration and have one of this program, because another run may set the address meanwhile.
func (n *network) present(in *network) *network {
	return n.without(func(was backends.Interface) bool {
		_, named := n.of(was.Name)
		now, _ := in.of(was.Name)
		if _, ours := backends.NetFileOf(now.File); !named && ours {
			return true
		}
		return !was.Virtual && was.MAC != "" && !slices.ContainsFunc(in.interfaces, func(i backends.Interface) bool { return i.MAC == was.MAC })
	})
}

// settled compares the network with before, and waits at most so long until the interfaces are as they were. A read that has begun may
// take longer in a slow guest: half of the time after which it takes a change back. The error is that of the last read if none
// succeeded: then nothing was compared.
func (g *Guests) settled(ctx context.Context, vm string, before *network, ours string, limit time.Duration) (differs []string, err error) {
	compared := false
	_ = backends.Poll{What: "compare its interfaces", Target: vm, Limit: limit, Every: g.options.Poll}.Until(ctx,
		func(context.Context) (bool, error) {
			r, rerr := g.Run(ctx, vm, traced(ssh.Command{Script: networkScript(), Sudo: true, Limit: g.options.TakeBack / 2, MaxOutput: 8 << 20}))
			if rerr == nil {
				now := sections(r.Stdout).network()
				differs = now.differs(before, ours)
				compared, err = true, nil
				return len(differs) == 0, nil
			}
			if !compared {
				err = rerr
			}
			return false, nil
		})
	return differs, err
}

// undo undoes a change that has changed other interfaces.
func (g *Guests) undo(ctx context.Context, vm string, t turn, differs []string) error {
	_, err := g.ask(ctx, vm, "undo the change of "+t.nic.Name, ssh.Command{Script: t.undo(), Limit: 5 * time.Minute})
	text := "the guest has undone it"
	if err != nil {
		text = fmt.Sprintf("the guest undoes it by itself (%v)", err)
	}
	return backends.Permanentf(label(vm),
		"Find out what in the guest's configuration changes these interfaces, and exclude the guest until then.",
		"the change of %s changed other interfaces, and %s: %s", t.nic.Name, text, strings.Join(differs, "; "))
}
