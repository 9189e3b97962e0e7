// Package setting sets what vCenter manages: distributed switches, port groups, memberships, host options, firewall rulesets, and
// the configuration of VMs. Every setter is safe to repeat and verifies changes by reading them back.
package setting

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// taskLimit bounds one task: long enough for a DVS with hundreds of hosts, short enough to end.
const taskLimit = 20 * time.Minute

// A site is what all setters share.
type site struct {
	conn   *wire.Conn
	places *place.Places
	dvs    *switches
}

// Settings returns the setters of one vCenter.
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

// inFlight is the default number of hosts that are read or changed in parallel.
const inFlight = 16

// Setters returns the setters for every kind of setting that vCenter manages. All settings of a VM share one setter, so that they
// are changed in one reconfigure. Parallel bounds how many hosts one call of a setter works on; 0 is 16.
func (s *Settings) Setters(parallel int) map[backends.Kind]backends.Setter {
	if parallel <= 0 {
		parallel = inFlight
	}
	many := func(k hostSetting) *hosts {
		return &hosts{hostSetting: k, site: s.site, parallel: parallel, alone: map[place.Ref]bool{}}
	}
	return map[backends.Kind]backends.Setter{
		backends.KindSwitch:    switchSetter{s.site},
		backends.KindPortGroup: groupSetter{s.site},
		backends.KindMember:    memberSetter{s.site},
		backends.KindVMKNic:    vmknicSetter{s.site},
		backends.KindOption:    many(optionSetter{s.site}),
		backends.KindFirewall:  many(firewallSetter{s.site}),
		backends.KindHardware:  hardwareSetter{s.site},
		backends.KindMemory:    s.vms,
		backends.KindCPU:       s.vms,
		backends.KindLatency:   s.vms,
		backends.KindNested:    s.vms,
		backends.KindAdapter:   s.vms,
		backends.KindExtra:     s.vms,
		backends.KindDevice:    s.vms,
		backends.KindVGPU:      s.vms,

		backends.KindDeviceGroup: s.vms,
	}
}

// AdapterMAC returns the MAC address (lower case, colons) of a VM's adapter on a port group, which identifies the interface in its
// guest; an RDMA adapter has priority over an ordinary one.
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
		return "", backends.Refusedf(vm, "", "%s: there is no such port group", what)
	}
	o, err := s.site.conn.One(ctx, ref, "config.hardware.device")
	if err != nil {
		return "", wire.Explain(err, vm, what)
	}
	dev, _, ok := net.adapter(wire.Value[types.ArrayOfVirtualDevice](o, "config.hardware.device").VirtualDevice)
	if !ok {
		return "", backends.Refusedf(vm, "apply the plan first", "%s: the VM has no adapter there", what)
	}
	a, _, _ := survey.AdapterOf(dev)
	if a.MAC == "" {
		return "", backends.Transientf(vm, "power the VM on once", "%s: vCenter has not given it one yet", what)
	}
	return a.MAC, nil
}

// Devices returns the PCI devices that are passed through to a VM.
func (s *Settings) Devices(ctx context.Context, vm string) ([]backends.AssignedDevice, error) {
	ref, err := s.site.places.Find(ctx, backends.VMRef(vm))
	if err != nil {
		return nil, err
	}
	o, err := s.site.conn.One(ctx, ref, "config.hardware.device")
	if err != nil {
		return nil, wire.Explain(err, vm, "read the PCI devices that are passed through")
	}
	var out []backends.AssignedDevice
	for _, d := range wire.Value[types.ArrayOfVirtualDevice](o, "config.hardware.device").VirtualDevice {
		if p, is := d.(*types.VirtualPCIPassthrough); is {
			out = append(out, survey.AssignedOf(p))
		}
	}
	return out, nil
}

func (s *site) run(ctx context.Context, progress backends.Progress, start func(context.Context) (place.Ref, error)) (types.AnyType, error) {
	ctx, cancel := context.WithTimeout(ctx, taskLimit)
	defer cancel()
	return s.conn.Run(ctx, progress, start)
}

// Grounds returns the facts on which vCenter's refusal of a VM's configuration depends, as a text that stays the same as long as
// they do: hardware version, guest, firmware, size and devices of the VM, and name, version and build of its host. "" for other
// targets.
func (s *Settings) Grounds(ctx context.Context, t backends.Ref) (string, error) {
	const what = "read what the VM is made of"
	if t.Type != backends.TypeVM {
		return "", nil
	}
	ref, err := s.site.places.Find(ctx, t)
	if err != nil {
		return "", err
	}
	o, err := s.site.conn.One(ctx, ref, "config.version", "config.guestId", "config.firmware", "config.hardware.numCPU",
		"config.hardware.memoryMB",
		"config.hardware.device", "runtime.host")
	if err != nil {
		return "", wire.Explain(err, t.Name, what)
	}
	host, err := s.site.conn.One(ctx, wire.Value[place.Ref](o, "runtime.host"), "name", "config.product.version", "config.product.build")
	if err != nil {
		return "", wire.Explain(err, t.Name, what)
	}
	count := map[string]int{}
	for _, d := range wire.Value[types.ArrayOfVirtualDevice](o, "config.hardware.device").VirtualDevice {
		count[strings.TrimPrefix(reflect.TypeOf(d).Elem().Name(), "Virtual")]++
	}
	var devices []string
	for _, name := range slices.Sorted(maps.Keys(count)) {
		devices = append(devices, fmt.Sprintf("%d %s", count[name], name))
	}
	return backends.Clean(fmt.Sprintf("vmx-%d, %s, %s, %d CPUs, %d MB, %s; on %s, ESXi %s build %s",
			survey.HardwareVersion(wire.Value[string](o, "config.version")),
			wire.Value[string](o, "config.guestId"), wire.Value[string](o, "config.firmware"), wire.Value[int32](o, "config.hardware.numCPU"),
			wire.Value[int32](o, "config.hardware.memoryMB"), strings.Join(devices, ", "),
			wire.Value[string](host, "name"), wire.Value[string](host, "config.product.version"), wire.Value[string](host, "config.product.build"))),
		nil
}
