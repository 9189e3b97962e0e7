package guest

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// port activates an RDMA port: KindPort.
type port struct{ g *Guests }

func (p port) device(ctx context.Context, s backends.Setting) (*backends.VerbsDevice, error) {
	mac, err := p.g.mac(ctx, s)
	if err != nil {
		return nil, err
	}
	f, err := p.g.facts(ctx, s.Target.Name, ssh.Command{Script: section("rdma", script("rdma-devices.sh")) + networkScript() +
		section("devinfo", "[ -d /sys/class/infiniband ] || ibv_devinfo -v"), MaxOutput: 8 << 20})
	if err != nil {
		return nil, err
	}
	for _, d := range f.devices(f.network().interfaces) {
		if d.MAC == mac {
			return &d, nil
		}
	}
	return nil, nil
}

// Read returns the state of the port, Absent if the adapter has no RDMA device.
func (p port) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	d, err := p.device(ctx, s)
	if err != nil || d == nil {
		return backends.Absent, err
	}
	return backends.ValueOf(d.State), nil
}

// Set activates the port: link up, link down and up, reload of the driver, in this order, each only if the one before did not
// help. It stops if the kernel log shows a call trace.
func (p port) Set(ctx context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	vm := s.Target.Name
	var want string
	if to.IsAbsent() || to.Decode(&want) == nil && want != "PORT_ACTIVE" {
		return nil // a state, not a setting: there is nothing to restore
	}
	d, err := p.device(ctx, s)
	if err != nil {
		return err
	}
	if d == nil {
		return backends.Permanentf(label(vm),
			"Load the driver (vmw_pvrdma, mlx5_ib), and check that the adapter is attached and the VM was power-cycled since.",
			"the adapter on %s has no RDMA device in the guest", s.Name)
	}
	if d.State == want {
		return nil
	}
	r, err := p.g.step(ctx, vm,
		step{what: "bring the port of " + d.Name + " up", Command: ssh.Command{Script: portScript(*d, p.g.options.Settle),
			Limit: 2*time.Minute + 4*p.g.options.Settle}})
	if err != nil {
		return err
	}
	said := lastLines(r.Stderr, 2)
	switch {
	case r.ExitCode == 0:
		return nil
	case strings.Contains(said, "new Call Trace"):
		return moduleError(vm, r)
	case strings.Contains(r.Stdout, "no carrier"):
		return backends.Permanentf(label(vm),
			"Check that the VM's adapter is connected and that the port group's uplink has a link.",
			"the port of %s stays down: %s has no carrier", d.Name, d.Interface)
	}
	if said == "" {
		said = "tried " + strings.Join(strings.Fields(strings.ReplaceAll(r.Stdout, "step ", "")), ", ")
	}
	return backends.Permanentf(label(vm), "Check the guest's kernel log and the RDMA device of the host's uplink.",
		"the port of %s stays down: %s", d.Name, said)
}

func portScript(d backends.VerbsDevice, settle time.Duration) string {
	module := ""
	if d.Driver == pvrdma {
		module = pvrdma
	}
	return traceGuard(script("port.sh", d.Name, d.Interface, strconv.Itoa(max(1, int(settle/time.Second)/4)), module))
}

// card returns the MAC of a passed-through NIC: vCenter has no adapter for it, only the guest reports it. If the guest does not
// report the card, the error is of kind refused.
func (g *Guests) card(ctx context.Context, vm, name string) (string, error) {
	owner := &backends.VM{}
	pci, _ := backends.OfHCA(name)
	if pci != "" {
		devices, err := g.macs.Devices(ctx, vm)
		if err != nil {
			return "", err
		}
		owner.Devices = devices
	}
	f, err := g.facts(ctx, vm, ssh.Command{Script: networkScript() + section("rdma", script("rdma-devices.sh"))})
	if err != nil {
		return "", err
	}
	seen := backends.Guest{RDMA: f.devices(f.network().interfaces)}
	if d := seen.CardAt(owner, name); d != nil && d.MAC != "" {
		return d.MAC, nil
	}
	return "", notSeen(vm, pci, owner.Devices, seen.RDMA)
}

// notSeen explains why none of the RDMA devices of a guest can be identified as the card at a PCI address of the host.
func notSeen(vm, pci string, given []backends.AssignedDevice, seen []backends.VerbsDevice) error {
	refuse := func(hint, format string, args ...any) error {
		return backends.Refusedf(label(vm), hint, format, args...)
	}
	if pci == "" {
		return refuse("load the driver of the card in the guest, and connect one of its ports",
			"the guest has no RDMA device, or several of which none is active")
	}
	i := slices.IndexFunc(given, func(d backends.AssignedDevice) bool { return strings.EqualFold(d.PCI, pci) })
	var at []string
	for _, d := range seen {
		at = append(at, d.Name+" behind "+cmp.Or(d.Bridge, "no bridge"))
	}
	have := cmp.Or(strings.Join(at, ", "), "there is none")
	switch {
	case i < 0:
		return refuse("run rdma-setup apply again: it attaches the card to the VM", "the VM does not have the card at %s", pci)
	case given[i].GuestBridge() == "":
		return refuse("power the VM off and on once, so that vCenter gives the device a slot behind a PCI bridge",
			"cannot tell which RDMA device is the card at %s: its PCI slot in the VM is %d; RDMA devices of the guest: %s", pci, given[i].Slot, have)
	}
	return refuse("look for pciBridgeN.pciSlotNumber and pciPassthruN.pciSlotNumber in the VM's advanced settings: with the VM off, remove "+
		"those that were set by hand, and run rdma-setup apply again",
		"no RDMA device of the guest is behind the PCI bridge %s, where slot %d of the card at %s leads (KB 311606); RDMA devices of "+
			"the guest: %s",
		given[i].GuestBridge(), given[i].Slot, pci, have)
}
