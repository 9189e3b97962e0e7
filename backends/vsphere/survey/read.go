// Package survey reads an inventory: one pass over a container view with narrow property lists, and a second one for the details of
// the chosen objects. Everything else is computed.
package survey

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Read reads the inventory of a scope. It costs five calls, with details two more, plus one per further page of 500 objects. The
// index contains every object of the vCenter, including those outside the scope.
//
// Hosts before 7.0 have no RDMA devices in the API: ask reads them with esxcli, by the host's name. It is called concurrently,
// and only for connected hosts.
func Read(ctx context.Context, conn *wire.Conn, scope backends.Scope,
	ask func(*place.Index) AskRDMA) (*backends.Inventory, *place.Index, error) {
	rd, unknown, err := pass(ctx, conn, scope)
	if isGone(err) || errors.Is(err, errLostView) {
		// The session ended between creating the view and reading it, and the view with it.
		rd, unknown, err = pass(ctx, conn, scope)
	}
	if errors.Is(err, errLostView) {
		err = nil // the result is correct: an empty vCenter, or an account without rights
	}
	if err != nil {
		return nil, nil, wire.Explain(err, "vCenter", "read the inventory")
	}
	vc := vcenterOf(conn)
	if len(rd.hosts) == 0 {
		vc.NoHosts = rd.noHosts(ctx, conn)
	}
	if err := rd.limit(scope); err != nil {
		if vc.NoHosts != "" {
			return nil, nil, backends.Refusedf("", backends.HintNoHosts, "no host was found: %s", vc.NoHosts)
		}
		return nil, nil, err
	}
	gaps := append(rd.older(ctx, ask), rd.vendorGroups(ctx, conn)...)
	if scope.Details {
		more, err := rd.details(ctx, conn, scope)
		if err != nil {
			return nil, nil, wire.Explain(err, "vCenter", "read the details of hosts and VMs")
		}
		gaps = append(gaps, more...)
		vc.DVSVersions, err = dvsVersions(ctx, conn)
		if err != nil {
			gaps = append(gaps, backends.Gap{Target: backends.Ref{Type: backends.TypeVCenter}, What: backends.GapDVSVersions, Why: wire.Text(err)})
		}
	}
	if vc.Clock, vc.ClockAsked, err = clock(ctx, conn); err != nil {
		gaps = append(gaps, backends.Gap{Target: backends.Ref{Type: backends.TypeVCenter}, What: "clock", Why: wire.Text(err)})
	}
	inv := rd.join(conn.VIM().URL().Hostname())
	inv.VCenter = vc
	inv.Gaps = append(append(gaps, rd.unseen()...), unknowns(unknown, inv)...)
	return inv, rd.index, nil
}

func pass(ctx context.Context, conn *wire.Conn, scope backends.Scope) (*reading, wire.Unknown, error) {
	vim := conn.VIM()
	view, err := methods.CreateContainerView(ctx, vim, &types.CreateContainerView{
		This: *vim.ServiceContent.ViewManager, Container: vim.ServiceContent.RootFolder, Type: overviewTypes, Recursive: true,
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		// Even if ctx has ended: the server keeps views until the session ends.
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, _ = methods.DestroyView(tidy, vim, &types.DestroyView{This: view.Returnval})
	}()
	if scope.Names != nil {
		early := newReading()
		_, err := conn.Retrieve(ctx, []types.PropertyFilterSpec{names(view.Returnval)}, early.take)
		if err == nil && early.limit(scope) == nil { // otherwise the error below says what is wrong
			inv := early.join("")
			inv.VCenter = vcenterOf(conn)
			scope.Names(inv)
		}
	}
	rd := newReading()
	seen := false
	unknown, err := conn.Retrieve(ctx, []types.PropertyFilterSpec{overview(view.Returnval)}, func(o wire.Object) {
		seen = true
		rd.take(o)
	})
	if err == nil && !seen {
		err = errLostView
	}
	return rd, unknown, err
}

// errLostView means that a view was empty: it was lost with a session that had to be renewed.
var errLostView = errors.New("vCenter shows no objects, not even a datacenter")

func newReading() *reading {
	return &reading{index: place.NewIndex(), managed: map[place.Ref]bool{}, hidden: map[place.Ref][]string{}}
}

// take converts an object when it arrives, so that the raw properties of a page can be freed.
func (rd *reading) take(o wire.Object) {
	rd.index.Add(o.Ref, text(o, "name"), place.Parent(o))
	if len(o.Hidden) > 0 {
		rd.hidden[o.Ref] = o.Hidden
	}
	switch place.TargetOf(o.Ref) {
	case backends.TypeHost:
		rd.hosts = append(rd.hosts, hostOf(o))
	case backends.TypeVM:
		rd.vms = append(rd.vms, vmOf(o))
	case backends.TypeSwitch:
		rd.switches = append(rd.switches, switchOf(o))
	case backends.TypePortGroup:
		rd.groups = append(rd.groups, groupOf(o))
	}
	if o.Ref.Type == "ClusterComputeResource" {
		if c := clusterOf(o); c != nil {
			rd.clusters = append(rd.clusters, c)
		}
	}
	if flag(o, "lifecycleManaged") {
		rd.managed[o.Ref] = true
	}
}

// limit removes hosts and VMs outside the scope's datacenter and cluster. Switches stay, because their members include hosts of
// other clusters.
func (rd *reading) limit(scope backends.Scope) error {
	x := rd.index
	if scope.Datacenter != "" && len(x.Datacenters(scope.Datacenter)) == 0 {
		return backends.Refusedf(scope.Datacenter, rd.instead(backends.TypeDatacenter),
			"there is no datacenter of that name in vCenter")
	}
	inside := func(ref place.Ref) bool {
		if scope.Datacenter == "" {
			return true
		}
		dc, _ := x.Above(ref, "Datacenter")
		return slices.Contains(x.Datacenters(scope.Datacenter), dc)
	}
	near := func(v *vmRow) bool { // if no folder leads to a VM, as in a vApp that the account may not see, its host decides
		if dc, _ := x.Above(v.ref, "Datacenter"); dc.Value == "" {
			return inside(v.host)
		}
		return inside(v.ref)
	}
	named := func(c place.Ref) bool {
		return scope.Cluster == "" || c != place.Ref{} && (x.Path(c) == scope.Cluster || backends.BaseName(x.Name(c)) == scope.Cluster)
	}
	cluster := func(ref place.Ref) bool {
		c, _ := x.Above(ref, "ClusterComputeResource")
		return named(c)
	}
	if scope.Cluster != "" && !slices.ContainsFunc(x.All(backends.TypeCluster), func(c place.Ref) bool { return inside(c) && named(c) }) {
		return backends.Refusedf(scope.Cluster, rd.instead(backends.TypeCluster), "there is no cluster of that name")
	}
	rd.hosts = slices.DeleteFunc(rd.hosts, func(h *hostRow) bool { return !inside(h.ref) || !cluster(h.ref) })
	rd.vms = slices.DeleteFunc(rd.vms, func(v *vmRow) bool { return !near(v) || !cluster(v.host) })
	rd.clusters = slices.DeleteFunc(rd.clusters, func(c *clusterRow) bool { return !inside(c.ref) || !named(c.ref) })
	return nil
}

// instead is the hint for an unknown name: the existing names, if there are few.
func (rd *reading) instead(t backends.TargetType) string {
	var names []string
	for _, ref := range rd.index.All(t) {
		names = append(names, rd.index.Name(ref))
	}
	if len(names) == 0 || len(names) > 8 {
		return "list the names with: rdma-setup discover"
	}
	return "there is: " + strings.Join(names, ", ")
}

// noHosts returns why vCenter shows no host: it has no datacenter, the account may not see any, or those that it sees have no
// hosts. An account without System.View on the root folder sees only objects on which it has a role, and their ancestors (vSphere
// Security, "System.View" among the system privileges that every role has).
func (rd *reading) noHosts(ctx context.Context, conn *wire.Conn) string {
	if len(rd.index.All(backends.TypeDatacenter)) > 0 {
		_, names, _ := strings.Cut(rd.instead(backends.TypeDatacenter), "there is: ")
		return strings.TrimSpace("the account " + conn.User() + " sees no host in its datacenters " + names)
	}
	vim := conn.VIM()
	if manager := vim.ServiceContent.AuthorizationManager; manager != nil {
		res, err := methods.HasPrivilegeOnEntity(ctx, vim, &types.HasPrivilegeOnEntity{
			This: *manager, Entity: vim.ServiceContent.RootFolder, SessionId: conn.Session(), PrivId: []string{"System.View"},
		})
		_, denied := wire.FaultOf(err).(*types.NoPermission) // the call itself requires System.View
		switch {
		case err != nil && !denied, err == nil && len(res.Returnval) != 1:
		case denied || !res.Returnval[0]:
			return "the account " + conn.User() + " has no role that shows it a datacenter (System.View is not granted on the root folder)"
		default:
			return "vCenter has no datacenter"
		}
	}
	return "vCenter has no datacenter, or the account " + conn.User() + " cannot see any"
}

func isGone(err error) bool {
	_, gone := wire.FaultOf(err).(*types.ManagedObjectNotFound)
	return gone
}

// labMark is in the full name of the embedded lab's vCenter. Other simulators, such as govmomi's, are not the lab: their answers
// do not show how strict they are.
const labMark = "(simulated by rdma-setup lab)"

func vcenterOf(conn *wire.Conn) backends.VCenter {
	about := conn.VIM().ServiceContent.About
	return backends.VCenter{
		URL: conn.URL(), InstanceUUID: about.InstanceUuid, Version: about.Version, Build: about.Build,
		User: conn.User(), Thumbprint: conn.Served(), Simulated: strings.Contains(about.FullName, labMark),
	}
}

func clock(ctx context.Context, conn *wire.Conn) (server, asked time.Time, err error) {
	before := time.Now()
	now, err := methods.GetCurrentTime(ctx, conn.VIM())
	if err != nil {
		return server, before, err
	}
	// Half of the duration is assumed for the request and half for the reply: the rest is the clock difference.
	return *now, before.Add(time.Since(before) / 2), nil
}

func dvsVersions(ctx context.Context, conn *wire.Conn) ([]string, error) {
	vim := conn.VIM()
	if vim.ServiceContent.DvSwitchManager == nil {
		return nil, nil
	}
	res, err := methods.QueryAvailableDvsSpec(ctx, vim, &types.QueryAvailableDvsSpec{This: *vim.ServiceContent.DvSwitchManager})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, spec := range res.Returnval {
		out = append(out, spec.Version)
	}
	slices.SortFunc(out, natural)
	return slices.Compact(out), nil
}

// unseen returns gaps for objects that the account has no permission to see.
func (rd *reading) unseen() []backends.Gap {
	var out []backends.Gap
	for ref, paths := range rd.hidden {
		if t := place.TargetOf(ref); t != "" {
			out = append(out, backends.Gap{
				Target: backends.Ref{Type: t, Name: rd.index.Name(ref)}, What: strings.Join(paths, ", "), Why: "permission denied (System.Read)",
			})
		}
	}
	slices.SortFunc(out, func(a, b backends.Gap) int { return natural(a.Target.String(), b.Target.String()) })
	return out
}

// unknowns returns gaps for properties that this vCenter's API does not have (rdmaDevice before 7.0).
func unknowns(u wire.Unknown, inv *backends.Inventory) []backends.Gap {
	var out []backends.Gap
	for _, kind := range []string{"HostSystem", "VirtualMachine", "DistributedVirtualSwitch", "DistributedVirtualPortgroup", "ComputeResource",
		"ClusterComputeResource"} {
		for _, path := range u[kind] {
			out = append(out, backends.Gap{
				Target: backends.Ref{Type: backends.TypeVCenter}, What: kind + " " + path,
				Why: "vCenter " + inv.VCenter.Version + " has no such property",
			})
		}
	}
	for i := range inv.Hosts {
		h := &inv.Hosts[i]
		if h.State != "connected" {
			out = append(out, backends.Gap{Target: backends.HostRef(h.Name), What: "current state", Why: "the host is " + h.State})
		}
	}
	return out
}
