package image

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/vmware/govmomi/vapi/esx/settings/clusters"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// An applySpec says what to remediate (Esx.Settings.Clusters.Software.ApplySpec). Without hosts it is the complete cluster.
type applySpec struct {
	Hosts      []string `json:"hosts"`
	AcceptEULA bool     `json:"accept_eula"`
}

// remediate applies the image of its cluster to one host, which is in maintenance mode. Lifecycle Manager reboots it.
func (s setter) remediate(ctx context.Context, t backends.Setting, host place.Ref, to backends.Value, progress backends.Progress) error {
	o, err := s.conn.One(ctx, host, "parent", "runtime.inMaintenanceMode")
	if err != nil {
		return err
	}
	cluster := wire.Value[place.Ref](o, "parent")
	done, err := s.turn(ctx, cluster)
	if err != nil {
		return err
	}
	defer done()
	until := time.Now().Add(s.remediation)
	now, err := s.back(ctx, t, until)
	if err != nil || now == to {
		return err
	}
	image, err := s.components(ctx, software(cluster))
	switch {
	case err != nil:
		return err
	case valueOf(image, t.Name) != to:
		return backends.Conflictf("", "see who edits the image of the cluster, then plan again",
			"the image has %s of %s, not %s", valueOf(image, t.Name), t.Name, to)
	case !wire.Value[bool](o, "runtime.inMaintenanceMode"):
		return backends.Refusedf("", "run "+
			"rdma-setup resume: the host is emptied first", "the host is not in maintenance mode")
	}
	var apply policy
	if err := s.conn.REST(ctx, http.MethodGet, clusters.BasePath+"/"+cluster.Value+"/policies/apply/effective", nil, &apply); err != nil {
		return err
	}
	if apply.Power != KeepPower {
		return backends.Refusedf("",
			"set the remediation settings of the cluster to leave the power state of VMs unchanged, then run rdma-setup resume",
			"remediation would change the power state of VMs (%s)", apply.Power)
	}
	progress.Report(5)
	spec := applySpec{Hosts: []string{host.Value}, AcceptEULA: true}
	for try := 1; ; try++ {
		err := s.conn.RESTTask(ctx, time.Until(until), software(cluster)+"?action=apply&vmw-task=true", spec, nil)
		// Another operation may be the remediation that an earlier run started: the host is read again afterwards.
		busy := wire.IsREST(err, "NOT_ALLOWED_IN_CURRENT_STATE")
		if backends.KindOf(err) == backends.KindUnreachable && time.Now().After(until) {
			return backends.Unreachablef("",
				"look at the host's console, and at the remediation in vCenter; run rdma-setup resume when it has ended",
				"its remediation has not ended within %s: the host may not have come back from its reboot", RemediationLimit)
		}
		if err != nil && !busy && !wire.IsREST(err, "ALREADY_IN_DESIRED_STATE") {
			return err
		}
		if !busy {
			break
		}
		if time.Now().After(until) || !wire.Pause(ctx, min(try, 7)) {
			return err
		}
		if now, rerr := s.Read(ctx, t); rerr == nil && now == to {
			return nil
		}
	}
	progress.Report(90)
	return s.confirm(ctx, t, to)
}

// back reads a host. It waits for a host that does not answer: a remediation started by an earlier run may be rebooting it.
func (s setter) back(ctx context.Context, t backends.Setting, until time.Time) (backends.Value, error) {
	for try := 1; ; try++ {
		now, err := s.Read(ctx, t)
		if err == nil || !wire.IsREST(err, "SERVICE_UNAVAILABLE") || time.Now().After(until) || !wire.Pause(ctx, min(try, 7)) {
			return now, err
		}
	}
}

// confirm reads a host until it reports the expected version, because it may have reconnected only a moment ago. A task that
// succeeded may have skipped the host.
func (s setter) confirm(ctx context.Context, t backends.Setting, to backends.Value) error {
	const tries = 9 // about half a minute in total
	for try := 1; ; try++ {
		now, err := s.Read(ctx, t)
		if err == nil && now == to {
			return nil
		}
		if err == nil && try >= wire.Tries {
			return backends.Conflictf("", "see the result at the cluster: Updates, Image, last remediation; then run "+
				"rdma-setup resume",
				"remediation ended, but %s on the host reads %s, not %s", t.Name, now, to)
		}
		if try >= tries {
			return fmt.Errorf("read it back: %w", err)
		}
		if !wire.Pause(ctx, try) {
			return context.Cause(ctx)
		}
	}
}
