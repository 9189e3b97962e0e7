// Package system sets and reads the system settings of ESXi hosts: power policy, VFs and passthrough, the parameters of kernel
// modules and the VIBs of the image. Everything goes through vCenter, including esxcli; nothing needs SSH.
package system

import (
	"context"
	"sync"

	"github.com/vmware/govmomi/vim25/types"

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

// part returns one of a host's managers, which older or disconnected hosts may lack.
func (s *System) part(ctx context.Context, t backends.Ref, pick func(types.HostConfigManager) *types.ManagedObjectReference) (host, part place.Ref, err error) {
	if host, err = s.places.Find(ctx, t); err != nil {
		return host, part, err
	}
	parts, err := s.places.Parts(ctx, host)
	if err != nil {
		return host, part, err
	}
	p := pick(parts)
	if p == nil {
		return host, part, backends.Errorf(backends.KindUnreachable, t.Name, "check the host's connection in vCenter", "the host does not offer this now")
	}
	return host, *p, nil
}

func decode[T any](v backends.Value, target, what string) (T, error) {
	var out T
	if err := v.Decode(&out); err != nil {
		return out, backends.Errorf(backends.KindPermanent, target, "", "%s: %w", what, err)
	}
	return out, nil
}
