package bracket

import (
	"context"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// The SSH service of a host and its firewall ruleset.
const (
	sshService = "TSM-SSH"
	sshRuleset = "sshServer"
)

// shell keeps the SSH service of a host running. Its state records whether the service was running and the ruleset open before, and
// is restored. Lockdown mode is respected and never changed.
type shell struct{ site }

// A Shell is the state of an SSH bracket.
type Shell struct {
	Running bool `json:"running"` // the service TSM-SSH
	Open    bool `json:"open"`    // the firewall ruleset sshServer
}

// A shellView is the state of a host that the bracket needs.
type shellView struct {
	Shell
	ref      place.Ref
	parts    types.HostConfigManager
	lockdown types.HostLockdownMode
	known    bool // the host has the service
}

func (b shell) view(ctx context.Context, t backends.Ref) (shellView, error) {
	ref, err := b.places.Find(ctx, t)
	if err != nil {
		return shellView{}, err
	}
	v := shellView{ref: ref}
	if v.parts, err = b.places.Parts(ctx, ref); err != nil {
		return v, err
	}
	if v.parts.ServiceSystem == nil {
		return v, backends.Unreachablef(t.Name, "check the host's connection in vCenter",
			"the host does not offer its services now")
	}
	o, err := b.conn.One(ctx, ref, "config.service.service", "config.firewall.ruleset", "config.lockdownMode")
	if err != nil {
		return v, err
	}
	v.lockdown = wire.Value[types.HostLockdownMode](o, "config.lockdownMode")
	for _, s := range wire.Value[types.ArrayOfHostService](o, "config.service.service").HostService {
		if s.Key == sshService {
			v.Running, v.known = s.Running, true
		}
	}
	v.Open = true // a host without the ruleset does not block it either
	for _, r := range wire.Value[types.ArrayOfHostFirewallRuleset](o, "config.firewall.ruleset").HostFirewallRuleset {
		if r.Key == sshRuleset {
			v.Open = r.Enabled
		}
	}
	return v, nil
}

// fresh is view after vCenter has refreshed the host's services, if the account has the privilege for that.
func (b shell) fresh(ctx context.Context, t backends.Ref) (shellView, error) {
	v, err := b.view(ctx, t)
	if err != nil {
		return v, err
	}
	if _, err := methods.RefreshServices(ctx, b.conn.VIM(), &types.RefreshServices{This: *v.parts.ServiceSystem}); err != nil &&
		wire.FaultOf(err) == nil {
		return v, err
	}
	return b.view(ctx, t)
}

func (b shell) State(ctx context.Context, t backends.Ref) (backends.Value, error) {
	v, err := b.view(ctx, t)
	if err != nil {
		return backends.Absent, wire.Explain(err, t.Name, "read the SSH service")
	}
	return backends.ValueOf(v.Shell), nil
}

// Open starts the service and opens its ruleset if necessary. The service is started first: some versions open the ruleset with
// the service and refuse any other change to it.
func (b shell) Open(ctx context.Context, t backends.Ref, progress backends.Progress) error {
	const what = "start the SSH service"
	read := func() (backends.Value, bool, error) {
		v, err := b.fresh(ctx, t)
		return backends.ValueOf(v.Shell), v.Running && v.Open, err
	}
	return wire.Set(ctx, t.Name, what, backends.ValueOf(Shell{Running: true, Open: true}), progress, read, func() error {
		v, err := b.view(ctx, t)
		if err == nil {
			err = b.allowed(ctx, t, v)
		}
		if err == nil && !v.Running {
			err = b.run(ctx, v, true)
		}
		if err == nil && !v.Open {
			if v, err = b.view(ctx, t); err == nil && !v.Open {
				err = b.setRuleset(ctx, v, true)
			}
		}
		return err
	})
}

// Close stops the service and closes the ruleset if Open found them so.
func (b shell) Close(ctx context.Context, t backends.Ref, leave backends.Value, progress backends.Progress) error {
	before, err := state[Shell](leave, t.Name)
	if err != nil {
		return err
	}
	read := func() (backends.Value, bool, error) {
		v, err := b.fresh(ctx, t)
		return backends.ValueOf(v.Shell), (before.Running || !v.Running) && (before.Open || !v.Open), err
	}
	return wire.Set(ctx, t.Name, "restore the SSH service", leave, progress, read, func() error {
		v, err := b.view(ctx, t)
		if err == nil && v.Running && !before.Running {
			err = b.run(ctx, v, false)
		}
		if err == nil && v.Open && !before.Open {
			if v, err = b.view(ctx, t); err == nil && v.Open {
				err = b.setRuleset(ctx, v, false)
			}
		}
		return err
	})
}

// allowed fails for hosts on which a login would be refused.
func (b shell) allowed(ctx context.Context, t backends.Ref, v shellView) error {
	if !v.known {
		return backends.Permanentf(t.Name, "", "the host has no service %s", sshService)
	}
	if v.lockdown == "" || v.lockdown == types.HostLockdownModeLockdownDisabled {
		return nil
	}
	user, mode := b.opt.ShellUser, strings.ToLower(strings.TrimPrefix(string(v.lockdown), "lockdown"))
	if user == "" {
		user = "root"
	}
	unread := ""
	if m := v.parts.HostAccessManager; m != nil {
		res, err := methods.QueryLockdownExceptions(ctx, b.conn.VIM(), &types.QueryLockdownExceptions{This: *m})
		switch {
		case err == nil && slices.Contains(res.Returnval, user):
			return nil
		case err != nil && wire.FaultOf(err) == nil: // some accounts may not read the exception users
			return err
		case err != nil:
			unread = wire.Explain(err, t.Name, "ask for the exception users of lockdown mode").Error()
		}
	}
	if unread != "" {
		return backends.Refusedf(t.Name,
			"give the account Global.Settings (rdma-setup generate role), or take the host out of lockdown mode for this run",
			"the host is in %s lockdown mode, and whether %s may log in by SSH is not known: %s", mode, user, unread)
	}
	return backends.Refusedf(t.Name,
		"take the host out of lockdown mode for this run, or make "+user+
			" one of its exception users (host, Configure, Security Profile); this program changes neither",
		"the host is in %s lockdown mode and %s is not one of its exception users, so it cannot log in by SSH", mode, user)
}

func (b shell) run(ctx context.Context, v shellView, on bool) (err error) {
	if on {
		_, err = methods.StartService(ctx, b.conn.VIM(), &types.StartService{This: *v.parts.ServiceSystem, Id: sshService})
	} else {
		_, err = methods.StopService(ctx, b.conn.VIM(), &types.StopService{This: *v.parts.ServiceSystem, Id: sshService})
	}
	if _, already := wire.FaultOf(err).(*types.InvalidState); already {
		return nil
	}
	return err
}

func (b shell) setRuleset(ctx context.Context, v shellView, on bool) (err error) {
	if v.parts.FirewallSystem == nil {
		return nil
	}
	if on {
		_, err = methods.EnableRuleset(ctx, b.conn.VIM(), &types.EnableRuleset{This: *v.parts.FirewallSystem, Id: sshRuleset})
	} else {
		_, err = methods.DisableRuleset(ctx, b.conn.VIM(), &types.DisableRuleset{This: *v.parts.FirewallSystem, Id: sshRuleset})
	}
	return err
}
