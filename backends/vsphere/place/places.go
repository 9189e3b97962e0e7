package place

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// freshFor is how long a name that was not found is assumed not to exist.
const freshFor = 2 * time.Second

// Places resolves targets to managed objects. It is safe for concurrent use.
type Places struct {
	conn *wire.Conn

	mu    sync.Mutex
	index *Index
	read  map[backends.TargetType]time.Time
	parts map[Ref]types.HostConfigManager

	loading sync.Mutex
}

// New returns empty Places.
func New(conn *wire.Conn) *Places {
	return &Places{conn: conn, index: NewIndex(), read: map[backends.TargetType]time.Time{}, parts: map[Ref]types.HostConfigManager{}}
}

// Adopt takes over the index of a new inventory.
func (p *Places) Adopt(index *Index) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index = index
	now := time.Now()
	for _, t := range []backends.TargetType{backends.TypeHost, backends.TypeVM, backends.TypeSwitch, backends.TypePortGroup,
		backends.TypeCluster, backends.TypeDatacenter} {
		p.read[t] = now
	}
}

// Put adds an object that was just created.
func (p *Places) Put(ref Ref, name string, parent Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index.Add(ref, name, parent)
}

// Drop removes an object that proved stale; the next Find reads it again.
func (p *Places) Drop(ref Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.index.Remove(ref)
	delete(p.parts, ref)
	p.read[TargetOf(ref)] = time.Time{}
}

// Name returns the name of a managed object if it is known.
func (p *Places) Name(ref Ref) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.index.Name(ref)
}

// Datacenter returns the name of the datacenter above a managed object.
func (p *Places) Datacenter(ref Ref) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.index.Datacenter(ref)
}

// Find resolves a target; if there is none, it returns an error of kind refused.
func (p *Places) Find(ctx context.Context, t backends.Ref) (Ref, error) {
	ref, ok, err := p.Look(ctx, t)
	if err == nil && !ok {
		err = noSuch(t)
	}
	return ref, err
}

// Look resolves a target that may not exist.
func (p *Places) Look(ctx context.Context, t backends.Ref) (Ref, bool, error) {
	if t.Type == backends.TypeGuest {
		t.Type = backends.TypeVM
	}
	if err := ctx.Err(); err != nil {
		return Ref{}, false, wire.Explain(err, t.Name, "look it up in vCenter")
	}
	if ref, ok, _, err := p.look(t); ok || err != nil {
		return ref, ok, err
	}
	p.loading.Lock()
	defer p.loading.Unlock()
	ref, ok, fresh, err := p.look(t)
	if ok || err != nil || fresh {
		return ref, ok, err
	}
	if err := p.load(ctx, t.Type); err != nil {
		return Ref{}, false, wire.Explain(err, t.Name, "look it up in vCenter")
	}
	ref, ok, _, err = p.look(t)
	return ref, ok, err
}

func (p *Places) look(t backends.Ref) (ref Ref, ok, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref, ok, err = p.index.Find(t)
	return ref, ok, time.Since(p.read[t.Type]) < freshFor, err
}

// load reads the names and parents of all objects above the targets of one type.
func (p *Places) load(ctx context.Context, t backends.TargetType) error {
	kinds := []string{"Datacenter", "Folder"}
	switch t {
	case backends.TypeSwitch, backends.TypePortGroup:
		kinds = append(kinds, "DistributedVirtualSwitch", "DistributedVirtualPortgroup")
	case backends.TypeHost, backends.TypeCluster:
		kinds = append(kinds, "ComputeResource", "HostSystem")
	case backends.TypeVM:
		kinds = append(kinds, "VirtualMachine", "VirtualApp")
	case backends.TypeDatacenter:
	default:
		return errors.New("vCenter has no such targets")
	}
	found, err := p.names(ctx, kinds)
	if err == nil && len(found) == 0 { // the view was lost with a session that had to be renewed
		found, err = p.names(ctx, kinds)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, k := range kinds {
		if t := TargetOf(Ref{Type: k}); t != "" {
			p.index.RemoveType(t)
			p.read[t] = now
		}
	}
	for _, o := range found {
		p.index.Add(o.Ref, wire.Value[string](o, "name"), Parent(o))
	}
	return nil
}

// Parent returns the parent of an object in the inventory tree. A VM in a vApp has only the vApp as parent
// (bhoriuchi/vsphere-connect issue 16; ansible-collections/community.vmware issue 777). A vApp's own parent is a resource pool;
// in the tree of VMs and templates it is in its parentFolder, or in the vApp around it (vSphere Web Services API, VirtualApp).
func Parent(o wire.Object) Ref {
	for _, path := range []string{"parentVApp", "parentFolder", "parent"} {
		if ref, ok := wire.Prop[Ref](o, path); ok && ref.Value != "" {
			return ref
		}
	}
	return Ref{}
}

// names reads the objects of some types through a container view.
func (p *Places) names(ctx context.Context, kinds []string) (found []wire.Object, err error) {
	vim := p.conn.VIM()
	view, err := methods.CreateContainerView(ctx, vim, &types.CreateContainerView{
		This: *vim.ServiceContent.ViewManager, Container: vim.ServiceContent.RootFolder, Type: kinds, Recursive: true,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = methods.DestroyView(ctx, vim, &types.DestroyView{This: view.Returnval}) }()
	var sets []types.PropertySpec
	for _, k := range kinds {
		set := types.PropertySpec{Type: k, PathSet: []string{"name", "parent"}}
		switch k {
		case "VirtualMachine":
			set.PathSet = append(set.PathSet, "parentVApp")
		case "VirtualApp":
			set.PathSet = append(set.PathSet, "parentVApp", "parentFolder")
		}
		sets = append(sets, set)
	}
	_, err = p.conn.Retrieve(ctx, []types.PropertyFilterSpec{Through(view.Returnval, sets)}, func(o wire.Object) { found = append(found, o) })
	return found, err
}

// Through returns the spec that reads the objects of a container view.
func Through(view Ref, sets []types.PropertySpec) types.PropertyFilterSpec {
	return types.PropertyFilterSpec{
		PropSet: sets,
		ObjectSet: []types.ObjectSpec{{
			Obj: view, Skip: types.NewBool(true),
			SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: view.Type, Path: "view"}},
		}},
		ReportMissingObjectsInResults: types.NewBool(true),
	}
}

// Parts returns the references of a host's own managers. They are read for all known hosts at once.
func (p *Places) Parts(ctx context.Context, host Ref) (types.HostConfigManager, error) {
	if parts, ok := p.known(host); ok {
		return parts, nil
	}
	p.loading.Lock()
	defer p.loading.Unlock()
	if parts, ok := p.known(host); ok {
		return parts, nil
	}
	p.mu.Lock()
	hosts := p.index.All(backends.TypeHost)
	p.mu.Unlock()
	if len(hosts) == 0 {
		hosts = []Ref{host}
	}
	_, err := p.conn.Retrieve(ctx, []types.PropertyFilterSpec{wire.Of("HostSystem", hosts, "configManager")}, func(o wire.Object) {
		if parts, ok := wire.Prop[types.HostConfigManager](o, "configManager"); ok {
			p.mu.Lock()
			p.parts[o.Ref] = parts
			p.mu.Unlock()
		}
	})
	if err != nil {
		return types.HostConfigManager{}, err
	}
	parts, ok := p.known(host)
	if !ok {
		return parts, wire.ErrGone
	}
	return parts, nil
}

// One reads properties of a target's object.
func (p *Places) One(ctx context.Context, t backends.Ref, paths ...string) (wire.Object, error) {
	ref, err := p.Find(ctx, t)
	if err != nil {
		return wire.Object{}, err
	}
	return p.conn.One(ctx, ref, paths...)
}

// Part returns a host and one of its managers, which older or disconnected hosts may lack.
func (p *Places) Part(ctx context.Context, t backends.Ref, pick func(types.HostConfigManager) *Ref) (host, part Ref, err error) {
	if host, err = p.Find(ctx, t); err != nil {
		return host, part, err
	}
	parts, err := p.Parts(ctx, host)
	if err != nil {
		return host, part, err
	}
	if found := pick(parts); found != nil {
		return host, *found, nil
	}
	return host, part, backends.Unreachablef(t.Name, "check the host's connection in vCenter",
		"the host does not offer this now")
}

func (p *Places) known(host Ref) (types.HostConfigManager, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	parts, ok := p.parts[host]
	return parts, ok
}

// Datacenters returns the known datacenters.
func (p *Places) Datacenters() []Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.index.Datacenters("")
}

// FindDatacenter resolves a datacenter by name or path; "" is allowed if there is only one.
func (p *Places) FindDatacenter(ctx context.Context, name string) (Ref, error) {
	found := func() []Ref {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.index.Datacenters(name)
	}
	refs := found()
	if len(refs) == 0 {
		p.loading.Lock()
		err := p.load(ctx, backends.TypeSwitch)
		p.loading.Unlock()
		if err != nil {
			return Ref{}, wire.Explain(err, name, "look for the datacenter")
		}
		refs = found()
	}
	switch {
	case len(refs) == 1:
		return refs[0], nil
	case len(refs) == 0:
		return Ref{}, backends.Refusedf(name, "list the names with: rdma-setup discover",
			"there is no such datacenter in vCenter")
	case name == "":
		return Ref{}, backends.Refusedf("", "name one under hosts.datacenter", "there are %d datacenters in vCenter",
			len(refs))
	}
	return Ref{}, backends.Refusedf(name, "use the inventory path instead of the name",
		"the datacenter's name is ambiguous")
}

// Expire makes the next lookup of an unknown target of a type read it again.
func (p *Places) Expire(t backends.TargetType) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read[t] = time.Time{}
}
