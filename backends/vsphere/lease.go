package vsphere

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// The lock that all operators of a vCenter see is a custom attribute of a cluster. Defining an attribute fails with DuplicateName
// if its name exists, so only one of several simultaneous attempts succeeds. The key of an attribute is unique, so only the
// attribute that was read is removed, never one that was created since. The vSphere Client shows its value on the cluster.
// Source: vSphere Web Services API, Managed Object - CustomFieldsManager, Data Object - CustomFieldDef. Privileges:
// Global.ManageCustomFields on the root, Global.SetCustomField on the cluster (vSphere Security, "Global Privileges").
//
// The attribute of all measurements on a vCenter is at the root of its inventory; both privileges are needed there.
const (
	leasePrefix = "rdma-setup.lock."
	measuring   = "rdma-setup.measuring"
)

// A Holder identifies who holds the lock of a cluster: the value of the attribute. Times are those of vCenter's clock.
type Holder struct {
	Run     string    `json:"run"`
	User    string    `json:"user"`    // vCenter account
	Machine string    `json:"machine"` // name of the jump host
	Boot    string    `json:"boot"`    // identifies the jump host's boot, so that process ids can be compared
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"` // expires unless it is renewed
}

func (h Holder) String() string {
	if h.Run == "" {
		return "an unknown holder"
	}
	return fmt.Sprintf("run %s of %s on %s (process %d, since %s, lease until %s)", h.Run, h.User, h.Machine, h.PID,
		h.Since.UTC().Format("2006-01-02 15:04:05 MST"), h.Until.UTC().Format("15:04:05 MST"))
}

// NewHolder returns this process as the holder of a lock.
func (c *Client) NewHolder(run string, since time.Time) Holder {
	return Holder{Run: run, User: c.User(), Machine: machineName(), Boot: bootID(), PID: os.Getpid(), Since: since}
}

// Dead reports whether a holder is a process of this machine that has ended.
func (h Holder) Dead() bool {
	// The boot id is unique, names of machines may not be.
	return h.Run != "" && h.PID > 0 && h.Machine == machineName() && h.Boot != "" && h.Boot == bootID() &&
		errors.Is(syscall.Kill(h.PID, 0), syscall.ESRCH)
}

func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// bootID identifies this boot of this machine (proc(5), /proc/sys/kernel/random/boot_id) and the namespace of its process ids:
// containers share the boot, but cannot see each other's processes. It is empty if either cannot be read.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b)) + " " + ns
}

// Same reports whether two readings of a lock are equal: the same holder, who has not renewed it in between.
func (h Holder) Same(other Holder) bool {
	return h.Run == other.Run && h.User == other.User && h.Machine == other.Machine && h.Boot == other.Boot && h.PID == other.PID &&
		h.Since.Equal(other.Since) && h.Until.Equal(other.Until)
}

// A Lease is a lock on a cluster, or on a standalone host, that all operators see.
type Lease struct {
	Target backends.Ref
	c      *Client
	entity place.Ref
	key    int32
}

// leaseName is the name of the attribute that is the lock of an entity.
func leaseName(entity place.Ref) string {
	if entity.Type == "Folder" {
		return measuring
	}
	return leasePrefix + entity.Value
}

// Now returns the time of vCenter's clock.
func (c *Client) Now(ctx context.Context) (time.Time, error) {
	now, err := methods.GetCurrentTime(ctx, c.conn.VIM())
	if err != nil {
		return time.Time{}, wire.Explain(err, "vCenter", "read its clock")
	}
	return now.UTC().Truncate(time.Second), nil
}

// TakeLease takes the lock of a target for h. If it is held by another, the lease is nil and holder says by whom, with the key
// for BreakLease; a run gets its own lock back.
func (c *Client) TakeLease(ctx context.Context, t backends.Ref, h Holder) (*Lease, *Holder, int32, error) {
	const what = "take the shared lock"
	entity, manager, err := c.leaseOn(ctx, t)
	if err != nil {
		return nil, nil, 0, err
	}
	for range 4 { // the holder may release it in the meantime
		def, err := methods.AddCustomFieldDef(ctx, c.conn.VIM(), &types.AddCustomFieldDef{This: manager, Name: leaseName(entity),
			MoType: entity.Type})
		if err == nil {
			l := &Lease{Target: t, c: c, entity: entity, key: def.Returnval.Key}
			if err := l.Renew(ctx, h); err != nil {
				_ = l.Release(context.WithoutCancel(ctx)) // the first error is more useful
				return nil, nil, 0, err
			}
			return l, nil, 0, nil
		}
		if _, taken := wire.FaultOf(err).(*types.DuplicateName); !taken {
			return nil, nil, 0, wire.Explain(err, t.Name, what)
		}
		holder, key, err := c.LeaseHolder(ctx, t)
		switch {
		case err != nil:
			return nil, nil, 0, err
		case holder == nil:
			continue
		case holder.Run == h.Run:
			l := &Lease{Target: t, c: c, entity: entity, key: key}
			return l, nil, 0, l.Renew(ctx, h)
		}
		return nil, holder, key, nil
	}
	return nil, nil, 0, backends.Transientf(t.Name, "Try again.", "%s: other runs keep taking and releasing it", what)
}

// LeaseHolder returns who holds the lock of a target, and the key of the attribute; nil if it is free. A Holder without a run has
// taken the lock and has not written its name yet.
func (c *Client) LeaseHolder(ctx context.Context, t backends.Ref) (*Holder, int32, error) {
	const what = "read the shared lock"
	entity, manager, err := c.leaseOn(ctx, t)
	if err != nil {
		return nil, 0, err
	}
	m, err := c.conn.One(ctx, manager, "field")
	if err != nil {
		return nil, 0, wire.Explain(err, t.Name, what)
	}
	for _, def := range wire.Value[types.ArrayOfCustomFieldDef](m, "field").CustomFieldDef {
		if def.Name != leaseName(entity) {
			continue
		}
		e, err := c.conn.One(ctx, entity, "customValue")
		if err != nil {
			return nil, 0, wire.Explain(err, t.Name, what)
		}
		h := &Holder{}
		for _, v := range wire.Value[types.ArrayOfCustomFieldValue](e, "customValue").CustomFieldValue {
			if text, is := v.(*types.CustomFieldStringValue); is && text.Key == def.Key {
				_ = json.Unmarshal([]byte(text.Value), h) // an edited value names no holder
			}
		}
		return h, def.Key, nil
	}
	return nil, 0, nil
}

// BreakLease removes the lock that LeaseHolder has read, and no other; a lock that its owner has renewed or named since stays.
// vCenter does not compare when it removes an attribute, so a renewal between the two calls is lost: its owner notices with its
// next renewal, before it takes anything out of service.
func (c *Client) BreakLease(ctx context.Context, t backends.Ref, key int32, h Holder) error {
	now, same, err := c.LeaseHolder(ctx, t)
	if err != nil || now == nil || same != key || !now.Same(h) {
		return err
	}
	return (&Lease{c: c, key: key}).Release(ctx)
}

// leaseOn finds the entity for a target's lock, for a vCenter the root folder, and the manager of attributes.
func (c *Client) leaseOn(ctx context.Context, t backends.Ref) (entity, manager place.Ref, err error) {
	m := c.conn.VIM().ServiceContent.CustomFieldsManager
	if m == nil {
		return entity, manager, backends.Errorf(backends.KindPermission, t.Name, "", "this server has no custom attributes")
	}
	if t.Type == backends.TypeVCenter {
		return c.conn.VIM().ServiceContent.RootFolder, *m, nil
	}
	entity, err = c.places.Find(ctx, t)
	return entity, *m, err
}

// Renew writes who holds the lock and until when. An error of kind conflict means that the lock was lost.
func (l *Lease) Renew(ctx context.Context, h Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = methods.SetField(ctx, l.c.conn.VIM(), &types.SetField{
		This: *l.c.conn.VIM().ServiceContent.CustomFieldsManager, Entity: l.entity, Key: l.key, Value: string(b),
	})
	if _, gone := wire.FaultOf(err).(*types.InvalidArgument); gone {
		return backends.Conflictf(l.Target.Name, "Find out who took it, then run rdma-setup resume.",
			"another run took over the shared lock of this run")
	}
	return wire.Explain(err, l.Target.Name, "write the shared lock")
}

// Release releases the lock. It succeeds if the lock no longer exists.
func (l *Lease) Release(ctx context.Context) error {
	_, err := methods.RemoveCustomFieldDef(ctx, l.c.conn.VIM(), &types.RemoveCustomFieldDef{
		This: *l.c.conn.VIM().ServiceContent.CustomFieldsManager, Key: l.key,
	})
	switch wire.FaultOf(err).(type) {
	case *types.InvalidArgument, *types.NotFound: // the API reference of RemoveCustomFieldDef documents the first
		return nil
	}
	return wire.Explain(err, l.Target.Name, "release the shared lock")
}
