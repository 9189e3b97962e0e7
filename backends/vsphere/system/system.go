// Package system sets and reads the system settings of ESXi hosts: power policy, VFs and passthrough, the parameters of kernel
// modules and the VIBs of the image. Everything goes through vCenter, including esxcli; nothing needs SSH.
package system

import (
	"sync"

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
