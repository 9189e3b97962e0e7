package setting

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

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
	o, err := s.site.conn.One(ctx, ref, "config.version", "config.guestId", "config.firmware", "config.hardware.numCPU", "config.hardware.memoryMB",
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
	return backends.Clean(fmt.Sprintf("vmx-%d, %s, %s, %d CPUs, %d MB, %s; on %s, ESXi %s build %s", survey.HardwareVersion(wire.Value[string](o, "config.version")),
		wire.Value[string](o, "config.guestId"), wire.Value[string](o, "config.firmware"), wire.Value[int32](o, "config.hardware.numCPU"),
		wire.Value[int32](o, "config.hardware.memoryMB"), strings.Join(devices, ", "),
		wire.Value[string](host, "name"), wire.Value[string](host, "config.product.version"), wire.Value[string](host, "config.product.build"))), nil
}
