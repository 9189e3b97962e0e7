package backends

import (
	"strconv"
	"strings"
)

// The kinds of setting, with the shape of their values. "Absent" removes unless it says otherwise.
const (
	// KindSwitch: target dvs/NAME, value SwitchSpec. Reading gives the spec of the DVS as it is. Creating is one
	// task with everything in it; a DVS that exists is changed in one reconfigure.
	KindSwitch Kind = "switch"
	// KindPortGroup: target portgroup/NAME, value PortGroupSpec.
	KindPortGroup Kind = "portgroup"
	// KindMember: target host/NAME, name = DVS, value MemberSpec. Changes of one DVS merge into one reconfigure.
	KindMember Kind = "member"
	// KindVMKNic: target host/NAME, name = IPv4 address, value VMKSpec: the vmknic that has this address. A host names it
	// itself when it is created.
	KindVMKNic Kind = "vmknic"
	// KindOption: target host/NAME, name = option key, value string or number. Never absent.
	KindOption Kind = "option"
	// KindFirewall: target host/NAME, name = ruleset key, value bool. Never absent.
	KindFirewall Kind = "firewall"
	// KindPower: target host/NAME, value string: the short name of the power policy (static is High Performance).
	// Never absent.
	KindPower Kind = "power-policy"
	// KindComponent: target host/NAME, name = the VIB's name (mft, nmst, nmlx5-core), value string, its version in the
	// image of the next boot. Setting installs from the depot that was named beforehand; removing is not done.
	KindComponent Kind = "component"
	// KindImageComponent: name = a component of Lifecycle Manager (Mellanox-NATIVE-NMST), value string, its version. Target
	// cluster/NAME: in the image that manages the cluster; setting edits the image (draft, validation, commit) and changes no
	// host. Target host/NAME: on the host, as it runs; setting remediates the host, in maintenance mode, with the whole image of
	// its cluster, which reboots it.
	KindImageComponent Kind = "image-component"
	// KindModuleParams: target host/NAME, name = the module (nmlx5_core), value map[string]string: every parameter that is
	// set, as the next boot will have it. Setting writes the whole string. Never absent: no parameter is an empty map.
	KindModuleParams Kind = "module-params"
	// KindFirmware: target host/NAME, name = PCI address of the card's function 0 (0000:3b:00.0), value map[string]string:
	// the keys of FirmwareRules.Keys that the card has, as the next boot will have them, numbers in decimal and
	// booleans as 0 and 1. Setting writes the keys that differ. Never absent.
	KindFirmware Kind = "firmware"
	// KindFirmwareImage: target host/NAME, name = PCI address of the card's function 0, value FirmwareImage: the firmware on the
	// card's flash, which the next boot loads. Setting writes it from its file; an interrupted write leaves the firmware that
	// was there. Never absent.
	KindFirmwareImage Kind = "firmware-image"
	// KindVFs: target host/NAME, name = PCI address of the PF, value VFSpec: HostSriovConfig of vCenter, the other way to
	// get VFs; never together with max_vfs on one PF. Never absent.
	KindVFs Kind = "vfs"
	// KindActiveVFs: target host/NAME, name = PCI address of the PF, value int: the VFs that are there now. A state that a
	// reboot brings about, not a setting: Set changes nothing and fails while it is another.
	KindActiveVFs Kind = "active-vfs"
	// KindPause: target host/NAME, name = pNIC (vmnic2), value PauseSpec: the global pause in force. Never absent.
	KindPause Kind = "pause"
	// KindPassthrough: target host/NAME, name = PCI address, value bool: enabled for passthrough. Never absent.
	KindPassthrough Kind = "passthrough"
	// KindActivePassthrough: target host/NAME, name = PCI address, value bool: VMs can have the device now. A state like
	// KindActiveVFs: some devices lose it at the boot that should bring it about (PCIe hot-plug).
	KindActivePassthrough Kind = "active-passthrough"

	// KindGraphics: target host/NAME, value GraphicsSpec: what its GPUs serve for, as configured. What they serve for now follows at
	// the next boot. Never absent.
	KindGraphics Kind = "graphics"
	// KindActiveGraphics: target host/NAME, value bool: all GPUs that are not passed through serve for vGPUs now. A state like
	// KindActiveVFs.
	KindActiveGraphics Kind = "active-graphics"

	// KindHardware: target vm/NAME, value int (19 for vmx-19); cannot be lowered again. VM off.
	KindHardware Kind = "hardware"
	// KindMemory: target vm/NAME, value MemorySpec. VM off.
	KindMemory Kind = "memory"
	// KindCPU: target vm/NAME, value int64: MHz of CPU reserved. Never absent: no reservation is 0. VM off.
	KindCPU Kind = "cpu"
	// KindLatency: target vm/NAME, value string: the latency sensitivity, normal or high. Never absent. VM off.
	KindLatency Kind = "latency"
	// KindAdapter: target vm/NAME, name = port group, value AdapterSpec. VM off.
	KindAdapter Kind = "adapter"
	// KindExtra: target vm/NAME, name = extraConfig key (compared without regard to case; an existing key keeps its
	// spelling), value string. VM off.
	KindExtra Kind = "extra"
	// KindDevice: target vm/NAME, name = PCI address of the device on the VM's host, value DeviceSpec. VM off.
	KindDevice Kind = "device"
	// KindVGPU: target vm/NAME, name = profile of vGPU (grid_a100d-80c), value int: how many vGPUs of this profile it has. VM off.
	KindVGPU Kind = "vgpu"
	// KindNested: target vm/NAME, value bool: nested virtualization (nestedHVEnabled). VM off. Never absent.
	KindNested Kind = "nested"

	// KindPackages: target guest/NAME, name = a word for the set ("rdma"), value PackageSpec. Keeper: going back
	// removes exactly what was newly installed with it.
	KindPackages Kind = "packages"
	// KindOFED: target guest/NAME, value OFEDSpec: NVIDIA's MLNX_OFED in place of the distribution's RDMA packages and drivers;
	// Partial if its installation by this program was cut short, Absent if the distribution's are. Keeper: going back puts the
	// packages back that it took away.
	KindOFED Kind = "ofed"
	// KindBuild: target guest/NAME, name = BuildDriver, BuildPerftest or BuildSamePerftest, value string: the file in the guest, or
	// the URL, that it was built from by this program; Partial of it where that was cut short. Absent: not by this program. Keeper.
	KindBuild Kind = "build"
	// KindNouveau: target guest/NAME, value bool (true): the kernel's own driver nouveau is kept from GPUs by a file of this
	// program in /etc/modprobe.d, and is not loaded; Partial if the file is there and it is loaded. Set reboots the guest where
	// it is loaded. Keeper.
	KindNouveau Kind = "nouveau"
	// KindModules: target guest/NAME, name = a word for the set, value []string, the modules loaded, in load order.
	KindModules Kind = "modules"
	// KindPersist: target guest/NAME, value Persist: what makes the modules are loaded at every boot. Keeper.
	KindPersist Kind = "persist"
	// KindAddress: target guest/NAME, name = port group of the adapter, value AddressSpec; the interface is found
	// by the MAC of that adapter when it is set. Keeper.
	KindAddress Kind = "address"
	// KindARP: target guest/NAME, name = port group of the adapter, value ARPSpec: how the interface behind it treats ARP and
	// packets that come in, now and after each boot; Partial where one of both is missing. Keeper.
	KindARP Kind = "arp"
	// KindNICName: target guest/NAME, name = MAC of an interface, value string: the name that systemd-udevd gives it at each boot,
	// whatever PCI slot it is in. Keeper.
	KindNICName Kind = "nic-name"
	// KindMemlock: target guest/NAME, value string: "unlimited" or KB. Keeper.
	KindMemlock Kind = "memlock"
	// KindTrafficClass: target guest/NAME, name = port group of the adapter, value int: the traffic class with which its RDMA
	// device marks what it sends, now and after each boot; Partial where one of both is missing, or something is left. Keeper.
	KindTrafficClass Kind = "traffic-class"
	// KindPortQoS: target guest/NAME, name = port group of the adapter, or WholeHCA, value QoSSpec: how a port that the guest owns
	// treats the class of RDMA, now and after each boot; Partial where one of both is missing, or something is left. Keeper.
	KindPortQoS Kind = "port-qos"
	// KindEnvironment: target guest/NAME, value int: the traffic class that the environment of every login tells to applications
	// (see ClassVariables); Partial if the file tells something else than the class and the index of the guest's addresses.
	// Keeper.
	KindEnvironment Kind = "environment"
	// KindImage: target guest/NAME, name = name of a container image, value string: the Dockerfile that it was built by.
	// An image that somebody else has made reads as the empty string. Keeper: going back gives the name to the image that had it.
	KindImage Kind = "image"
	// KindPort: target guest/NAME, name = port group of the adapter, value string "PORT_ACTIVE": repairs a port that
	// is down (link up, link down and up, module reload, in this order). A state, not a setting: nothing to undo.
	KindPort Kind = "port"
)

// ClassVariables tell applications to mark their RDMA traffic: UCX's and NCCL's traffic class, which neither takes from
// rdma_cm's default because both make their queue pairs themselves (OpenUCX FAQ, RoCE, "How to specify DSCP priority";
// NCCL user guide, NCCL_IB_TC), and the index of the RoCE v2 address where gid is not negative. Each is NAME=VALUE.
func ClassVariables(class, gid int) []string {
	v := []string{"UCX_IB_TRAFFIC_CLASS=" + strconv.Itoa(class), "NCCL_IB_TC=" + strconv.Itoa(class)}
	if gid >= 0 {
		v = append(v, "NCCL_IB_GID_INDEX="+strconv.Itoa(gid))
	}
	return v
}

// A SwitchSpec is what a DVS should be. Datacenter says where to create it and is not compared once it exists (reading fills it
// in).
type SwitchSpec struct {
	Datacenter string `json:"datacenter"`
	Version    string `json:"version"`
	Uplinks    int    `json:"uplinks"` // number of uplink ports a host gets
	MTU        int    `json:"mtu"`
	NIOC       bool   `json:"nioc"`
	Discovery  string `json:"discovery"` // "lldp listen", "cdp listen", "none"
}

// UplinkName is the name of the nth uplink (from 1) of a DVS that this program makes.
func UplinkName(n int) string { return "Uplink " + strconv.Itoa(n) }

// A PortGroupSpec is what a distributed port group should be.
type PortGroupSpec struct {
	Switch  string   `json:"switch"`
	VLAN    int      `json:"vlan"`    // 0: untagged
	Active  []string `json:"active"`  // active uplink names; one for PVRDMA
	Binding string   `json:"binding"` // earlyBinding
}

// A MemberSpec is a host's share in a DVS.
type MemberSpec struct {
	PNICs []string `json:"pnics"` // in uplink order; the PCI address of one that is none before its host reboots (Resolver)
}

// A VMKSpec is a vmknic with a static address, on a distributed port group.
type VMKSpec struct {
	PortGroup string `json:"port_group"`
	PrefixLen int    `json:"prefix_len"`
	MTU       int    `json:"mtu"`
}

// NodeAffinityKey is the extraConfig key that binds a VM to NUMA nodes of its host: "0", or "0,1".
const NodeAffinityKey = "numa.nodeAffinity"

// A MemorySpec is a VM's memory reservation.
type MemorySpec struct {
	Locked        bool  `json:"locked"`         // memoryReservationLockedToMax
	ReservationMB int64 `json:"reservation_mb"` // memoryAllocation.reservation; with Locked it is the whole memory
}

// An AdapterSpec is one virtual adapter.
type AdapterSpec struct {
	Type      string `json:"type"` // pvrdma, sriov, vmxnet3
	PortGroup string `json:"port_group"`
	Switch    string `json:"switch"`
	Protocol  string `json:"protocol,omitempty"` // rocev1, rocev2: pvrdma only
	Start     bool   `json:"start_connected"`
	GuestMTU  bool   `json:"guest_mtu,omitempty"` // sriov only
	PF        string `json:"pf,omitempty"`        // sriov only
}

// A PackageSpec is the set of packages wanted, by name, and which of them are installed: the plan asks for all.
type PackageSpec struct {
	Installed []string `json:"installed"` // sorted
}

// What is built in a guest from a file.
const (
	BuildDriver   = "nvidia"   // NVIDIA's driver, from its .run file
	BuildPerftest = "perftest" // perftest with CUDA, from its source

	BuildSamePerftest = "perftest-same" // perftest without CUDA, from its source: the same release in all guests
)

// PerftestPrefix is the directory in a guest where a perftest that this program builds is installed: its programs are in bin below
// it. The distribution's stays beside it.
func PerftestPrefix(build string) string { return "/opt/" + build }

// An OFEDSpec is the MLNX_OFED of a guest. Archive says what to install it from and is not compared (reading leaves it out).
type OFEDSpec struct {
	Version string `json:"version"`           // as ofed_info -s prints it, MLNX_OFED_LINUX-24.10-1.1.4.0; "" if an installation ended before it was there
	Archive string `json:"archive,omitempty"` // path in the guest
}

// Persist is what brings the modules back after a reboot.
type Persist struct {
	Modules []string          `json:"modules"`           // in /etc/modules-load.d
	Reload  string            `json:"reload"`            // the module that a unit reloads last at boot, "" when none is needed
	Options map[string]string `json:"options,omitempty"` // modprobe options by module
}

// A PauseSpec is the global pause (802.3x) of a pNIC.
type PauseSpec struct {
	Rx bool `json:"rx"`
	Tx bool `json:"tx"`
}

// A FirmwareImage is the firmware on a card. File says what to write it from and is not compared (reading leaves it out).
type FirmwareImage struct {
	PSID    string `json:"psid"`    // id of the board: the firmware of another does not fit
	Version string `json:"version"` // 16.35.8008
	File    string `json:"file,omitempty"`
}

// A VFSpec is how many VFs vCenter's own setting asks of a PF.
type VFSpec struct {
	Enabled bool `json:"enabled"`
	VFs     int  `json:"vfs"`
}

// WholeHCA names the settings of a guest that are about the RDMA card which its VM has whole, where others are named by
// the port group of the adapter: no port group leads to it, and the guest's interface is found by Guest.Card. A VM with several
// has names that say which: HCAName.
const WholeHCA = "hca"

// HCAName names the settings of a guest that are about one of the RDMA cards which its VM has whole, by the card's PCI address on
// the host: "hca 0000:3b:00.0".
func HCAName(pci string) string { return WholeHCA + " " + strings.ToLower(pci) }

// OfHCA reports whether a name is that of a whole card, and at which PCI address of the host it is; "" if the VM has one alone.
func OfHCA(name string) (pci string, whole bool) {
	pci, several := strings.CutPrefix(name, WholeHCA+" ")
	if !several || strings.Count(pci, ":") != 2 {
		return "", name == WholeHCA
	}
	return pci, true
}

// The backings of a device that a VM has whole, and of a share of one.
const (
	FixedBacking   = "fixed"   // this one: the VM stays on its host
	DynamicBacking = "dynamic" // one of its make, on whatever host has it free
	VGPUBacking    = "vgpu"    // a share that the vGPU manager gives (KindVGPU)
)

// SharedDirect is the graphics type of GPUs that serve for vGPUs (HostGraphicsConfigGraphicsType in the vSphere Web Services API;
// "Shared Direct" in the vSphere Client).
const SharedDirect = "sharedDirect"

// A GraphicsSpec is the graphics type of a host, and those of GPUs that have one of their own, by PCI address.
type GraphicsSpec struct {
	Default string            `json:"default"`
	Devices map[string]string `json:"devices,omitempty"`
}

// A DeviceSpec is a PCI device passed through whole.
type DeviceSpec struct {
	Backing string `json:"backing"` // fixed, dynamic
	Vendor  string `json:"vendor"`  // hex, 10de
	Device  string `json:"device"`  // hex, 20b5
}

// DHCP is the CIDR of an AddressSpec whose address a DHCP server gives.
const DHCP = "dhcp"

// An AddressSpec is the persistent configuration of the interface behind an adapter: a static address, or DHCP.
type AddressSpec struct {
	CIDR string `json:"cidr"` // 192.168.50.11/24, or DHCP
	MTU  int    `json:"mtu"`
	// Table is the routing table, and the priority of the rule that sends what comes from the address by it, where several
	// interfaces are in one subnet; 0: none, the subnet is the interface's alone.
	Table int `json:"table,omitempty"`
}

// An ARPSpec is what an interface has under net.ipv4.conf (kernel, Documentation/networking/ip-sysctl.rst).
type ARPSpec struct {
	Ignore   int `json:"arp_ignore"`   // 1: answers for its own addresses alone
	Announce int `json:"arp_announce"` // 2: asks with its own address
	RPFilter int `json:"rp_filter"`    // 2: takes what could be answered by any interface
}

// OneSubnet is what interfaces need that are in one subnet with others of their guest. By default Linux answers ARP requests for all
// addresses on all of them (ip-sysctl.rst, arp_ignore, arp_announce, rp_filter; libfabric wiki, "Verbs Provider on Multi-NIC Systems").
func OneSubnet() ARPSpec { return ARPSpec{Ignore: 1, Announce: 2, RPFilter: 2} }
