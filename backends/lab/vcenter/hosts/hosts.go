// Package hosts implements the methods of hosts and their sub-objects in the lab's vCenter.
package hosts

import (
	"errors"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// Register adds the methods to a frame.
func Register(f *frame.Frame) {
	b := base{f}
	f.Handle(system{b}, "HostSystem")
	f.Handle(firewall{b}, "HostFirewallSystem")
	f.Handle(services{b}, "HostServiceSystem")
	f.Handle(network{b}, "HostNetworkSystem")
	f.Handle(clock{b}, "HostDateTimeSystem")
	f.Handle(passthru{b}, "HostPciPassthruSystem")
	f.Handle(power{b}, "HostPowerSystem")
	f.Handle(graphics{b}, "HostGraphicsManager")
	f.Handle(assignable{b}, "HostAssignableHardwareManager")
	f.Handle(image{b}, "HostImageConfigManager")
	f.Handle(access{b}, "HostAccessManager")
	f.Handle(files{b}, "HostDatastoreBrowser")
	f.Handle(executer{b}, "ManagedMethodExecuter")
	f.Extend(options{b}, "OptionManager")
}

type base struct{ f *frame.Frame }

// name returns the name of the host that a call refers to. It fails if vCenter cannot connect to the host.
func (b base) name(ref types.ManagedObjectReference) (string, error) {
	var name string
	err := error(frame.Gone(ref))
	b.f.World.View(func(s *world.State) {
		switch h := model.HostOf(s, b.f.Owner(ref)); {
		case h == nil:
		case !h.Managed():
			err = frame.Refuse(&types.HostNotConnected{})
		default:
			name, err = h.Name, nil
		}
	})
	return name, err
}

// refusal converts an error of the world to vSphere's fault and text.
func refusal(err error, key string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, world.ErrUnknown):
		return frame.Refuse(&types.NotFound{})
	case errors.Is(err, world.ErrInvalid):
		return frame.BadArgument(key)
	}
	return err
}
