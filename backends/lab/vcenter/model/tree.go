// Package model represents the lab's world as the managed objects of a vCenter and keeps them up to date. Every change of the
// world, through the API or a shell, updates the properties that show it.
package model

import (
	"fmt"
	"sync"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// References of the objects that every inventory has.
var (
	Root        = ref("Folder", "group-d1")
	Datacenter  = ref("Datacenter", "datacenter-3")
	VMFolder    = ref("Folder", "group-v4")
	HostFolder  = ref("Folder", "group-h5")
	StoreFolder = ref("Folder", "group-s6")
	NetFolder   = ref("Folder", "group-n7")
	Cluster     = ref("ClusterComputeResource", "domain-c8")
	Pool        = ref("ResourcePool", "resgroup-9")
	Browser     = ref("EnvironmentBrowser", "envbrowser-8")
	Datastore   = ref("Datastore", "datastore-11")
	Files       = ref("HostDatastoreBrowser", "datastoreBrowser-datastore-11")
	VMNetwork   = ref("Network", "network-12")
	DVSManager  = ref("DistributedVirtualSwitchManager", "DVSManager")
)

// Size of the datastore that all hosts share, in bytes.
const (
	storeCapacity = 16 << 40
	storeFree     = 8 << 40
)

func ref(kind, value string) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: kind, Value: value}
}

// HostRef returns the reference of a host.
func HostRef(h *world.Host) types.ManagedObjectReference {
	return ref("HostSystem", fmt.Sprintf("host-%d", 1001+h.Index))
}

// ClusterRef returns the reference of a cluster, by the number that hosts have. PoolRef returns that of its root resource pool.
func ClusterRef(n int) types.ManagedObjectReference {
	if n == 0 {
		return Cluster
	}
	return ref(Cluster.Type, fmt.Sprintf("domain-c%d", 5000+n))
}

// PoolRef returns the reference of the root resource pool of a cluster.
func PoolRef(n int) types.ManagedObjectReference {
	if n == 0 {
		return Pool
	}
	return ref(Pool.Type, fmt.Sprintf("resgroup-%d", 5000+n))
}

// ClusterServices returns the services of a cluster.
func ClusterServices(s *world.State, cluster types.ManagedObjectReference) *world.Services {
	for n := range s.Clusters {
		if ClusterRef(n+1) == cluster {
			return s.ClusterServices(n + 1)
		}
	}
	return &s.Services
}

// clusterNames returns the names of all clusters, by number.
func clusterNames(s *world.State) []string {
	names := []string{s.Cluster}
	for _, c := range s.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// clusterOf returns the number of the cluster in which a VM is.
func clusterOf(s *world.State, v *world.VM) int {
	if len(s.Clusters) == 0 {
		return 0
	}
	if h := s.Host(v.Host); h != nil {
		return h.Cluster
	}
	return 0
}

// localStore returns the datastore that only one host can access. It exists if the disk of a VM is on it.
func localStore(host *world.Host) types.ManagedObjectReference {
	return ref("Datastore", fmt.Sprintf("datastore-%d", 1000+host.Index))
}

// localStores returns the local datastore of a host, if it has one.
func localStores(s *world.State, h *world.Host) []types.ManagedObjectReference {
	for _, v := range s.VMs {
		if v.Local && v.Host == h.Name {
			return []types.ManagedObjectReference{localStore(h)}
		}
	}
	return nil
}

// VMRef returns the reference of a VM.
func VMRef(v *world.VM) types.ManagedObjectReference {
	return ref("VirtualMachine", fmt.Sprintf("vm-%d", 10001+v.Index))
}

// SwitchRef returns the reference of a DVS.
func SwitchRef(d *world.DVS) types.ManagedObjectReference {
	return ref("VmwareDistributedVirtualSwitch", d.ID)
}

// PortGroupRef returns the reference of a distributed port group.
func PortGroupRef(p *world.PortGroup) types.ManagedObjectReference {
	return ref("DistributedVirtualPortgroup", p.Key)
}

// A Tree keeps the managed objects of one world.
type Tree struct {
	f *frame.Frame

	// mu makes reading the world and writing the properties one atomic step, so that properties always show the last change.
	mu sync.Mutex
}

// Build adds the complete inventory to the registry, and then updates it after each change of the world.
func Build(f *frame.Frame) *Tree {
	t := &Tree{f: f}
	f.Still = t.Still
	f.World.View(func(s *world.State) {
		for _, d := range s.Switches {
			Number(s, d)
		}
		t.fixed(s)
		for _, h := range s.Hosts {
			t.putHost(s, h)
		}
		for _, v := range s.VMs {
			t.putVM(s, v)
		}
		t.syncFolders(s, placed(s))
		for _, n := range s.NetFolders {
			self, parent := folderRef(NetFolder, n.ID), folderRef(NetFolder, n.Parent)
			f.Reg.Put(&mo.Folder{ManagedEntity: entityOf(self, world.Escaped(n.Name), &parent),
				ChildType: []string{"Folder", "Network", "DistributedVirtualSwitch"}, ChildEntity: netChildren(s)[self]})
		}
		for _, d := range s.Switches {
			f.Reg.Put(switchObject(s, d))
			for _, p := range d.PortGroups {
				f.Reg.Put(portGroupObject(s, d, p))
			}
		}
	})
	f.World.Watch(t.follow)
	return t
}

func (t *Tree) fixed(s *world.State) {
	at := placed(s)
	var all []types.ManagedObjectReference
	for n := range datacenters(s) {
		all = append(all, DatacenterRef(n))
		t.datacenter(s, n, at.root(n))
	}
	t.f.Reg.Put(&mo.Folder{ManagedEntity: entityOf(Root, "Datacenters", nil), ChildType: []string{"Folder", "Datacenter"}, ChildEntity: all})
	var mhz, memory int64
	for n := len(clusterNames(s)) - 1; n >= 0; n-- { // the first one last: vApps are in it
		t.f.Reg.Put(clusterObject(s, n, world.Escaped(clusterNames(s)[n]), networksOf(s, s.ClusterDatacenter(n))))
		mhz, memory = 0, 0
		for _, h := range s.Hosts {
			if h.Cluster == n {
				mhz, memory = mhz+int64(h.Cores)*CoreMHz, memory+h.MemoryMB<<20
			}
		}
		cluster := ClusterRef(n)
		pool := &mo.ResourcePool{
			ManagedEntity: entityOf(PoolRef(n), "Resources", &cluster), Owner: cluster, Vm: at.pools[n],
			Summary: &types.ResourcePoolSummary{Name: "Resources"},
		}
		if n == 0 {
			pool.ResourcePool = at.apps
		}
		fillPool(pool, mhz, memory)
		t.f.Reg.Put(pool)
	}
	for name, inside := range at.inside {
		app := &mo.VirtualApp{
			ResourcePool: mo.ResourcePool{ManagedEntity: entityOf(VAppRef(name), name, &Pool), Owner: Cluster, Vm: inside,
				Summary: &types.VirtualAppSummary{ResourcePoolSummary: types.ResourcePoolSummary{Name: name},
					VAppState: types.VirtualAppVAppStateStarted}},
			ParentFolder: &VMFolder,
		}
		fillPool(&app.ResourcePool, mhz, memory)
		t.f.Reg.Put(app)
	}
	t.f.Reg.Put(&mo.Alarm{ExtensibleManagedObject: mo.ExtensibleManagedObject{Self: hostAlarm},
		Info: types.AlarmInfo{AlarmSpec: types.AlarmSpec{Name: "Host hardware fan status", Enabled: true}, Key: hostAlarm.Value, Alarm: hostAlarm,
			Entity: Root}})
	t.f.Reg.Put(&mo.EnvironmentBrowser{Self: Browser, DatastoreBrowser: &Files})
}

func clusterObject(s *world.State, n int, name string, networks []types.ManagedObjectReference) *mo.ClusterComputeResource {
	v, pool, hosts := s.ClusterServices(n), PoolRef(n), []types.ManagedObjectReference(nil)
	das := types.ClusterDasConfigInfo{Enabled: types.NewBool(v.HA), AdmissionControlEnabled: types.NewBool(v.Failover > 0)}
	if level := int32(min(v.Failover, 31)); level > 0 {
		das.AdmissionControlPolicy = &types.ClusterFailoverLevelAdmissionControlPolicy{FailoverLevel: level}
	}
	haDefaults(&das)
	drs := types.ClusterDrsConfigInfo{Enabled: types.NewBool(!v.NoDRS), DefaultVmBehavior: types.DrsBehaviorFullyAutomated,
		EnableVmBehaviorOverrides: types.NewBool(true), VmotionRate: 3}
	if v.DRS != "" {
		drs.DefaultVmBehavior = types.DrsBehavior(v.DRS)
	}
	rules, groups := drsRules(s, v)
	summary := &types.ClusterComputeResourceSummary{CurrentEVCModeKey: v.EVC}
	summary.OverallStatus = types.ManagedEntityStatusGreen
	for _, h := range s.Hosts {
		if h.Cluster != n {
			continue
		}
		hosts = append(hosts, HostRef(h))
		summary.NumHosts++
		summary.NumEffectiveHosts++
		summary.NumCpuCores += int16(min(h.Cores, 1<<10))
		summary.NumCpuThreads += int16(min(h.Threads(), 1<<10))
		summary.TotalCpu += int32(h.Cores * CoreMHz)
		summary.EffectiveCpu += int32(h.Cores * CoreMHz)
		summary.TotalMemory += h.MemoryMB << 20
	}
	summary.EffectiveMemory = summary.TotalMemory >> 20
	return &mo.ClusterComputeResource{
		ComputeResource: mo.ComputeResource{
			ManagedEntity: entityOf(ClusterRef(n), name, ptr(HostFolderRef(s.ClusterDatacenter(n)))), ResourcePool: &pool, Host: hosts,
			Network: networks, EnvironmentBrowser: &Browser,
			Datastore: []types.ManagedObjectReference{DatastoreRef(s.ClusterDatacenter(n))}, Summary: summary,
			LifecycleManaged: types.NewBool(v.Image != nil),
			ConfigurationEx: &types.ClusterConfigInfoEx{DasConfig: das, DrsConfig: drs, Rule: rules, Group: groups,
				ProactiveDrsConfig: &types.ClusterProactiveDrsConfigInfo{Enabled: types.NewBool(false)},
				DpmConfigInfo: &types.ClusterDpmConfigInfo{Enabled: types.NewBool(false), DefaultDpmBehavior: types.DpmBehaviorAutomated,
					HostPowerActionRate: 3},
				VsanConfigInfo: &types.VsanClusterConfigInfo{Enabled: types.NewBool(v.VSAN),
					DefaultConfig: &types.VsanClusterConfigInfoHostDefaultInfo{AutoClaimStorage: types.NewBool(false),
						ChecksumEnabled: types.NewBool(false)}}},
		},
		Configuration: types.ClusterConfigInfo{DasConfig: das, DrsConfig: drs, Rule: rules},
	}
}

// drsRules returns the affinity rules of the cluster. A VM-host rule has a VM group and a host group.
func drsRules(s *world.State, of *world.Services) (rules []types.BaseClusterRuleInfo, groups []types.BaseClusterGroupInfo) {
	for _, r := range of.Rules {
		info := types.ClusterRuleInfo{Key: r.Key, Name: r.Name, Enabled: types.NewBool(true), Mandatory: types.NewBool(r.Must),
			UserCreated: types.NewBool(true),
			Status:      types.ManagedEntityStatusGreen, InCompliance: types.NewBool(true), RuleUuid: world.UUID("rule", int(r.Key))}
		var vms []types.ManagedObjectReference
		for _, name := range r.VMs {
			if v := s.VM(name); v != nil {
				vms = append(vms, VMRef(v))
			}
		}
		hosts := func(kind string, names []string) string {
			if len(names) == 0 {
				return ""
			}
			g := &types.ClusterHostGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: r.Name + " " + kind}}
			for _, name := range names {
				if h := s.Host(name); h != nil {
					g.Host = append(g.Host, HostRef(h))
				}
			}
			groups = append(groups, g)
			return g.Name
		}
		switch {
		case len(r.Hosts)+len(r.NotHosts) > 0:
			rule := &types.ClusterVmHostRuleInfo{ClusterRuleInfo: info, VmGroupName: r.Name + " VMs"}
			groups = append(groups, &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: rule.VmGroupName}, Vm: vms})
			rule.AffineHostGroupName, rule.AntiAffineHostGroupName = hosts("hosts", r.Hosts), hosts("other hosts", r.NotHosts)
			rules = append(rules, rule)
		case r.Apart:
			rules = append(rules, &types.ClusterAntiAffinityRuleSpec{ClusterRuleInfo: info, Vm: vms})
		default:
			rules = append(rules, &types.ClusterAffinityRuleSpec{ClusterRuleInfo: info, Vm: vms})
		}
	}
	return rules, groups
}

// networksOf returns the networks of a datacenter.
func networksOf(s *world.State, datacenter int) []types.ManagedObjectReference {
	list := []types.ManagedObjectReference{NetworkRef(datacenter)}
	for _, d := range s.Switches {
		if s.SwitchDatacenter(d) != datacenter {
			continue
		}
		for _, p := range d.PortGroups {
			list = append(list, PortGroupRef(p))
		}
	}
	return list
}

// FolderOf returns the folder of a DVS and its port groups.
func FolderOf(d *world.DVS) types.ManagedObjectReference { return folderRef(NetFolder, d.Folder) }

// netChildren returns the children of the folders network and of the folders below them.
func netChildren(s *world.State) map[types.ManagedObjectReference][]types.ManagedObjectReference {
	in := map[types.ManagedObjectReference][]types.ManagedObjectReference{}
	for n := range datacenters(s) {
		in[NetFolderRef(n)] = []types.ManagedObjectReference{NetworkRef(n)}
	}
	for _, f := range s.NetFolders {
		parent := folderRef(NetFolder, f.Parent)
		in[parent] = append(in[parent], folderRef(NetFolder, f.ID))
	}
	for _, d := range s.Switches {
		in[FolderOf(d)] = append(in[FolderOf(d)], SwitchRef(d))
	}
	for _, d := range s.Switches {
		for _, p := range d.PortGroups {
			in[FolderOf(d)] = append(in[FolderOf(d)], PortGroupRef(p))
		}
	}
	return in
}

// Still calls f. While f runs, no object is added, changed or removed.
func (t *Tree) Still(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}
