// Package setting sets what vCenter holds: distributed switches, port groups, memberships, host options, firewall
// rulesets, and the memory and adapters of VMs. Every setter is safe to repeat and believes only what it reads back.
package setting

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// tries bounds how often a change is made again after somebody else came first or the connection broke.
const tries = 5

// taskLimit bounds one task: long enough for a DVS with hundreds of hosts, short enough that nobody waits for ever.
const taskLimit = 20 * time.Minute

// A site is what all setters share.
type site struct {
	conn   *wire.Conn
	places *place.Places
	dvs    *switches
}

// Settings gives the setters of one vCenter.
type Settings struct {
	site *site
	vms  *vmSetter
}

// New returns the settings of a vCenter.
func New(conn *wire.Conn, places *place.Places) *Settings {
	s := &site{conn: conn, places: places}
	s.dvs = &switches{site: s, views: map[place.Ref]*switchView{}}
	return &Settings{site: s, vms: &vmSetter{site: s, nets: map[place.Ref]network{}}}
}

// Setters gives the setter of every kind of setting that vCenter holds. Memory and adapters share one, so that both
// go into one reconfigure.
func (s *Settings) Setters() map[backends.Kind]backends.Setter {
	return map[backends.Kind]backends.Setter{
		backends.KindSwitch:    switchSetter{s.site},
		backends.KindPortGroup: groupSetter{s.site},
		backends.KindMember:    memberSetter{s.site},
		backends.KindOption:    optionSetter{s.site},
		backends.KindFirewall:  firewallSetter{s.site},
		backends.KindHardware:  hardwareSetter{s.site},
		backends.KindMemory:    s.vms,
		backends.KindAdapter:   s.vms,
	}
}

// AdapterMAC gives the MAC address of a VM's adapter on a port group, an RDMA adapter before an ordinary one.
func (s *Settings) AdapterMAC(ctx context.Context, vm, group string) (string, error) {
	what := "read the MAC address of the adapter on " + group
	ref, err := s.site.places.Find(ctx, backends.VMRef(vm))
	if err != nil {
		return "", err
	}
	net, ok, err := s.vms.network(ctx, group)
	if err != nil {
		return "", wire.Explain(err, vm, what)
	}
	if !ok {
		return "", backends.Errorf(backends.KindRefused, vm, "", "%s: there is no such port group", what)
	}
	o, err := s.site.conn.One(ctx, ref, "config.hardware.device")
	if err != nil {
		return "", wire.Explain(err, vm, what)
	}
	dev, _, ok := net.adapter(wire.Value[types.ArrayOfVirtualDevice](o, "config.hardware.device").VirtualDevice)
	if !ok {
		return "", backends.Errorf(backends.KindRefused, vm, "apply the plan first", "%s: the VM has no adapter there", what)
	}
	a, _, _ := survey.AdapterOf(dev)
	if a.MAC == "" {
		return "", backends.Errorf(backends.KindTransient, vm, "power the VM on once", "%s: vCenter has not given it one yet", what)
	}
	return a.MAC, nil
}

// settle makes a change until it is read back. After a conflict or a broken connection it reads first: the change may
// have been made. What is the clause for errors ("set option Net.PVRDMAVmknic").
func settle(ctx context.Context, target, what string, to backends.Value, read func() (backends.Value, bool, error), act func() error) error {
	for try := 1; ; try++ {
		err := act()
		if err == nil {
			return confirm(ctx, target, what, to, read)
		}
		err = wire.Explain(err, target, what)
		if !again(err) || try == tries || !pause(ctx, try) {
			return err
		}
		if _, same, rerr := read(); rerr == nil && same {
			return nil
		}
	}
}

// confirm reads a value back. A server may show the old one for a moment.
func confirm(ctx context.Context, target, what string, to backends.Value, read func() (backends.Value, bool, error)) error {
	for try := 1; ; try++ {
		got, same, err := read()
		if err != nil {
			return wire.Explain(err, target, what+": read it back")
		}
		if same {
			return nil
		}
		if try == 3 || !pause(ctx, try) {
			return backends.Errorf(backends.KindConflict, target, "somebody or something sets it back; look at the object's events in vCenter",
				"%s: it was accepted, but reads %s, not %s", what, got, to)
		}
	}
}

// again tells errors after which the same change may succeed.
func again(err error) bool {
	switch backends.KindOf(err) {
	case backends.KindConflict, backends.KindTransient:
		return true
	}
	return false
}

// pause waits longer from try to try; false when ctx ends first.
func pause(ctx context.Context, try int) bool {
	t := time.NewTimer(time.Duration(try*try) * 100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// task waits for a task with the common limit.
func (s *site) task(ctx context.Context, ref types.ManagedObjectReference, progress backends.Progress) (types.AnyType, error) {
	ctx, cancel := context.WithTimeout(ctx, taskLimit)
	defer cancel()
	return s.conn.Task(ctx, ref, progress)
}

func decode[T any](v backends.Value, target, what string) (T, error) {
	var out T
	if err := v.Decode(&out); err != nil {
		return out, backends.Errorf(backends.KindPermanent, target, "", "%s: %w", what, err)
	}
	return out, nil
}

func ref[T any](v T) *T { return &v }
