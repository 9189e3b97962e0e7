package guest

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// port activates an RDMA port: KindPort.
type port struct{ g *Guests }

// device returns the RDMA device of an adapter; nil if there is none.
func (p port) device(ctx context.Context, s backends.Setting) (*backends.VerbsDevice, error) {
	mac, err := p.g.mac(ctx, s)
	if err != nil {
		return nil, err
	}
	r, err := p.g.Run(ctx, s.Target.Name, ssh.Command{Script: section("rdma", script("rdma-devices.sh")) + networkScript() +
		section("devinfo", "[ -d /sys/class/infiniband ] || ibv_devinfo -v"), MaxOutput: 8 << 20})
	if err != nil {
		return nil, err
	}
	f := sections(r.Stdout)
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
		return backends.Errorf(backends.KindPermanent, label(vm),
			"Load the driver (vmw_pvrdma, mlx5_ib), and check that the adapter is attached and the VM was power-cycled since.",
			"the adapter on %s has no RDMA device in the guest", s.Name)
	}
	if d.State == want {
		return nil
	}
	r, err := p.g.step(ctx, vm, step{what: "bring the port of " + d.Name + " up", Command: ssh.Command{Script: portScript(*d, p.g.options.Settle), Limit: 2*time.Minute + 4*p.g.options.Settle}})
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
		return backends.Errorf(backends.KindPermanent, label(vm), "Check that the VM's adapter is connected and that the port group's uplink has a link.",
			"the port of %s stays down: %s has no carrier", d.Name, d.Interface)
	}
	if said == "" {
		said = "tried " + strings.Join(strings.Fields(strings.ReplaceAll(r.Stdout, "step ", "")), ", ")
	}
	return backends.Errorf(backends.KindPermanent, label(vm), "Check the guest's kernel log and the RDMA device of the host's uplink.",
		"the port of %s stays down: %s", d.Name, said)
}

func portScript(d backends.VerbsDevice, settle time.Duration) string {
	module := ""
	if d.Driver == pvrdma {
		module = pvrdma
	}
	return traceGuard(script("port.sh", d.Name, d.Interface, strconv.Itoa(max(1, int(settle/time.Second)/4)), module))
}
