package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// parallel is how many hosts are queried at the same time if each needs a call of its own.
const parallel = 16

// details reads what a plan needs of the chosen hosts and VMs in one read.
func (rd *reading) details(ctx context.Context, conn *wire.Conn, scope backends.Scope) ([]backends.Gap, error) {
	hosts, vms, chosen := map[place.Ref]*hostRow{}, map[place.Ref]*vmRow{}, map[place.Ref]*hostRow{}
	for _, h := range rd.hosts {
		if scope.Hosts == nil || slices.Contains(scope.Hosts, rd.index.Name(h.ref)) {
			chosen[h.ref] = h
		}
		if scope.Wide || chosen[h.ref] != nil {
			hosts[h.ref] = h
		}
	}
	for _, v := range rd.vms {
		if scope.Wide || scope.VMs == nil || slices.Contains(scope.VMs, rd.index.Name(v.ref)) ||
			slices.Contains(scope.VMs, rd.index.Path(v.ref)) {
			vms[v.ref] = v
		}
	}
	if len(hosts)+len(vms) == 0 {
		return nil, nil
	}
	var gaps []backends.Gap
	if scope.Fresh {
		gaps = rd.refresh(ctx, conn, chosen)
	}
	asked := map[place.Ref]place.Ref{} // hosts whose properties lacked the option, and their option managers
	tasks := map[place.Ref][]string{}
	_, err := conn.Retrieve(ctx, detailSpec(hosts, vms), func(o wire.Object) {
		if h := hosts[o.Ref]; h != nil {
			h.detail(o)
			if _, told := h.host.Options[option]; !told {
				asked[o.Ref] = wire.Value[place.Ref](o, "configManager.advancedOption")
			}
		}
		if v := vms[o.Ref]; v != nil {
			v.detail(o)
		}
		if o.Ref.Type == "Task" {
			if state := text(o, "info.state"); state == "running" || state == "queued" {
				on := wire.Value[place.Ref](o, "info.entity")
				what := text(o, "info.descriptionId")
				if user := wire.TaskUser(o); user != "" {
					what += " by " + user
				}
				if since := wire.Value[time.Time](o, "info.queueTime"); !since.IsZero() {
					what += " since " + since.UTC().Format("2006-01-02 15:04:05 MST")
				}
				tasks[on] = append(tasks[on], what)
			}
		}
	})
	for ref, names := range tasks {
		if h := hosts[ref]; h != nil {
			slices.Sort(names)
			h.host.RecentTasks = names
		}
	}
	if err != nil {
		return nil, err
	}
	more, err := rd.askOptions(ctx, conn, hosts, asked)
	gaps = append(gaps, more...)
	if err != nil || scope.VMs == nil { // an overview of everything is not used for planning
		return gaps, err
	}
	more, err = rd.askGuestOS(ctx, conn, vms)
	return append(gaps, more...), err
}

func detailSpec(hosts map[place.Ref]*hostRow, vms map[place.Ref]*vmRow) []types.PropertyFilterSpec {
	spec := types.PropertyFilterSpec{
		ReportMissingObjectsInResults: types.NewBool(true),
		PropSet: []types.PropertySpec{
			{Type: "HostSystem", PathSet: append(slices.Clone(hostDetailPaths), "configManager.advancedOption")},
			{Type: "VirtualMachine", PathSet: vmDetailPaths},
			{Type: "Task", PathSet: []string{"info.state", "info.entity", "info.descriptionId", "info.reason", "info.queueTime"}},
		},
	}
	for ref := range hosts {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{
			Obj: ref, SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: "HostSystem", Path: "recentTask"}},
		})
	}
	for ref := range vms {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref})
	}
	return []types.PropertyFilterSpec{spec}
}

func (r *hostRow) detail(o wire.Object) {
	h := &r.host
	h.Options = map[string]string{}
	if v, ok := wire.Prop[types.OptionValue](o, `config.option["`+option+`"]`); ok {
		h.Options[option] = fmt.Sprint(v.Value)
	}
	h.Firewall = map[string]backends.Ruleset{}
	for _, s := range wire.Value[types.ArrayOfHostFirewallRuleset](o, "config.firewall.ruleset").HostFirewallRuleset {
		h.Firewall[s.Key] = rulesetOf(s)
	}
	if ntp, ok := wire.Prop[types.HostNtpConfig](o, "config.dateTimeInfo.ntpConfig"); ok {
		h.NTP = ntp.Server
	}
	h.Services = map[string]backends.Service{}
	for _, s := range wire.Value[types.ArrayOfHostService](o, "config.service.service").HostService {
		h.Services[s.Key] = backends.Service{Running: s.Running, Policy: s.Policy}
		switch s.Key {
		case "ntpd", "chronyd", "ptpd":
			h.NTPActive = h.NTPActive || s.Running
		}
	}
	h.PowerPolicy = text(o, "config.powerSystemInfo.currentPolicy.shortName")
	for _, p := range wire.Value[types.ArrayOfHostPowerPolicy](o, "config.powerSystemCapability.availablePolicy").HostPowerPolicy {
		h.PowerPolicies = append(h.PowerPolicies, p.ShortName)
	}
	h.Rebind = flag(o, "capability.deviceRebindWithoutRebootSupported")
	if state := text(o, "complianceCheckState.state"); state != "" && state != "unknown" {
		h.ManagedBy = append(h.ManagedBy, "host profile")
	}
	if flag(o, "config.deploymentInfo.bootedFromStatelessCache") {
		h.ManagedBy = append(h.ManagedBy, "Auto Deploy")
	}
	r.nfs(wire.Value[types.ArrayOfHostFileSystemMountInfo](o, "config.fileSystemVolume.mountInfo").HostFileSystemMountInfo)
}

// nfs assigns the role nfs to the vmknics whose subnet contains a mounted NFS server.
func (r *hostRow) nfs(mounts []types.HostFileSystemMountInfo) {
	for _, m := range mounts {
		v, ok := m.Volume.(*types.HostNasVolume)
		if !ok {
			continue
		}
		for _, server := range append(slices.Clone(v.RemoteHostNames), v.RemoteHost) {
			for _, k := range r.host.VMKs {
				if inSubnet(k.IP, k.PrefixLen, server) {
					r.role(k.Device, "nfs")
				}
			}
		}
	}
}

func rulesetOf(s types.HostFirewallRuleset) backends.Ruleset {
	out := backends.Ruleset{Enabled: s.Enabled, AllIP: true}
	if a := s.AllowedHosts; a != nil {
		out.AllIP = a.AllIp
		out.Networks = append(out.Networks, a.IpAddress...)
		for _, n := range a.IpNetwork {
			out.Networks = append(out.Networks, fmt.Sprintf("%s/%d", n.Network, n.PrefixLength))
		}
	}
	return out
}

func (v *vmRow) detail(o wire.Object) {
	v.vm.Extra = map[string]string{}
	v.browser = wire.Value[place.Ref](o, "environmentBrowser")
	affinity := ""
	for _, e := range wire.Value[types.ArrayOfOptionValue](o, "config.extraConfig").OptionValue {
		kv := e.GetOptionValue()
		switch key := strings.ToLower(kv.Key); {
		case strings.HasPrefix(key, "pcipassthru"):
			v.vm.Extra[kv.Key] = fmt.Sprint(kv.Value)
		case key == "numa.nodeaffinity":
			affinity = fmt.Sprint(kv.Value)
		}
	}
	if _, told := wire.Prop[types.ArrayOfOptionValue](o, "config.extraConfig"); told {
		v.vm.NodeAffinity = &affinity
	}
	for _, n := range wire.Value[types.ArrayOfGuestNicInfo](o, "guest.net").GuestNicInfo {
		for _, ip := range n.IpAddress {
			if !slices.Contains(v.vm.IPs, ip) && !strings.HasPrefix(strings.ToLower(ip), "fe80:") {
				v.vm.IPs = append(v.vm.IPs, ip)
			}
		}
	}
}

// askOptions reads the option individually from hosts whose properties lacked it.
func (rd *reading) askOptions(ctx context.Context, conn *wire.Conn, hosts map[place.Ref]*hostRow,
	asked map[place.Ref]place.Ref) ([]backends.Gap, error) {
	gaps := make(chan backends.Gap, len(asked))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for ref, manager := range asked {
		h, name := hosts[ref], rd.index.Name(ref)
		if manager.Value == "" || h.host.State != "connected" {
			continue // the host's state is listed as a gap of its own
		}
		g.Go(func() error {
			res, err := methods.QueryOptions(wire.On(ctx, name), conn.VIM(), &types.QueryOptions{This: manager, Name: option})
			if err != nil {
				if ctx.Err() != nil {
					return err
				}
				gaps <- backends.Gap{Target: backends.HostRef(name), What: "option " + option, Why: wire.Text(err)}
				return nil
			}
			for _, v := range res.Returnval {
				h.host.Options[option] = fmt.Sprint(v.GetOptionValue().Value)
			}
			return nil
		})
	}
	err := g.Wait()
	return sorted(gaps), err
}

// sorted closes a channel and returns its gaps sorted by target name.
func sorted(gaps chan backends.Gap) []backends.Gap {
	close(gaps)
	var out []backends.Gap
	for gap := range gaps {
		out = append(out, gap)
	}
	slices.SortFunc(out, func(a, b backends.Gap) int { return natural(a.Target.Name, b.Target.Name) })
	return out
}
