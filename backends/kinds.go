package backends

import (
	"strconv"
	"strings"
)

// The kinds of settings, with the shape of their values. Setting "Absent" removes the thing unless stated otherwise.
const (
	// KindSwitch: target dvs/NAME, value SwitchSpec. Read returns the current spec of the DVS. A new DVS is created complete in
	// one task; an existing one is changed in one reconfigure.
	KindSwitch Kind = "switch"
	// KindPortGroup: target portgroup/NAME, value PortGroupSpec.
	KindPortGroup Kind = "portgroup"
	// KindMember: target host/NAME, name = DVS, value MemberSpec. Changes of one DVS are merged into one reconfigure.
	KindMember Kind = "member"
	// KindVMKNic: target host/NAME, name = IPv4 address, value VMKSpec: the vmknic with this address. The host chooses the device
	// name when it is created.
	KindVMKNic Kind = "vmknic"
	// KindOption: target host/NAME, name = option key, value string or number. Never absent.
	KindOption Kind = "option"
	// KindFirewall: target host/NAME, name = ruleset key, value bool. Never absent.
	KindFirewall Kind = "firewall"
	// KindPower: target host/NAME, value string: the short name of the power policy (static is High Performance).
	// Never absent.
	KindPower Kind = "power-policy"
	// KindComponent: target host/NAME, name = name of the VIB (mft, nmst, nmlx5-core), value string, its version in the image for
	// the next boot. Set installs it from the depot that was named beforehand; it is never removed.
	KindComponent Kind = "component"
	// KindImageComponent: name = a component of Lifecycle Manager (Mellanox-NATIVE-NMST), value string, its version. Target
	// cluster/NAME: the component in the image that manages the cluster; Set edits the image (draft, validation, commit) and
	// changes no host. Target host/NAME: the component in the running image of the host; Set remediates the host, in maintenance
	// mode, with the whole image of its cluster, which reboots it.
	KindImageComponent Kind = "image-component"
	// KindModuleParams: target host/NAME, name = the module (nmlx5_core), value map[string]string: every parameter that is set,
	// as of the next boot. Set writes the whole parameter string. Never absent: an empty map means no parameter.
	KindModuleParams Kind = "module-params"
	// KindFirmware: target host/NAME, name = PCI address of the card's function 0 (0000:3b:00.0), value map[string]string: those
	// of FirmwareRules.Keys that the card has, as of the next boot, numbers in decimal and booleans as 0 and 1. Set writes the
	// keys that differ. Never absent.
	KindFirmware Kind = "firmware"
	// KindFirmwareImage: target host/NAME, name = PCI address of the card's function 0, value FirmwareImage: the firmware on the
	// card's flash, which the next boot loads. Set writes it from its file; an interrupted write leaves the previous firmware in
	// place. Never absent.
	KindFirmwareImage Kind = "firmware-image"
	// KindActiveFirmware: target host/NAME, name = PCI address of the card's function 0, value bool: the card runs the firmware that
	// its flash holds, and its ports are the host's. A state like KindActiveVFs: some cards load new firmware, or change their mode,
	// only when the server was without power.
	KindActiveFirmware Kind = "active-firmware"
	// KindVFs: target host/NAME, name = PCI address of the PF, value VFSpec: HostSriovConfig of vCenter, the alternative to
	// max_vfs; never combined with max_vfs on one PF. Never absent.
	KindVFs Kind = "vfs"
	// KindActiveVFs: target host/NAME, name = PCI address of the PF, value int: the number of VFs that exist now. This is a state
	// that a reboot produces, not a setting: Set changes nothing and fails if the number differs.
	KindActiveVFs Kind = "active-vfs"
	// KindPause: target host/NAME, name = pNIC (vmnic2), value PauseSpec: the active global pause. Never absent.
	KindPause Kind = "pause"
	// KindPassthrough: target host/NAME, name = PCI address, value bool: enabled for passthrough. Never absent.
	KindPassthrough Kind = "passthrough"
	// KindActivePassthrough: target host/NAME, name = PCI address, value bool: the device can be assigned to VMs now. A state
	// like KindActiveVFs: some devices lose passthrough at the boot that should activate it (PCIe hot-plug).
	KindActivePassthrough Kind = "active-passthrough"

	// KindGraphics: target host/NAME, value GraphicsSpec: the configured use of its GPUs. It becomes active at the next boot.
	// Never absent.
	KindGraphics Kind = "graphics"
	// KindActiveGraphics: target host/NAME, value bool: all GPUs that are not passed through can provide vGPUs now. A state like
	// KindActiveVFs.
	KindActiveGraphics Kind = "active-graphics"

	// KindHardware: target vm/NAME, value int (19 for vmx-19); cannot be lowered. VM off.
	KindHardware Kind = "hardware"
	// KindMemory: target vm/NAME, value MemorySpec. VM off.
	KindMemory Kind = "memory"
	// KindCPU: target vm/NAME, value int64: reserved CPU in MHz. Never absent: 0 means no reservation. VM off.
	KindCPU Kind = "cpu"
	// KindLatency: target vm/NAME, value string: latency sensitivity, normal or high. Never absent. VM off.
	KindLatency Kind = "latency"
	// KindAdapter: target vm/NAME, name = port group, value AdapterSpec. VM off.
	KindAdapter Kind = "adapter"
	// KindExtra: target vm/NAME, name = extraConfig key (case-insensitive; an existing key keeps its spelling), value string. VM
	// off.
	KindExtra Kind = "extra"
	// KindDevice: target vm/NAME, name = PCI address of the device on the VM's host, value DeviceSpec. VM off.
	KindDevice Kind = "device"
	// KindVGPU: target vm/NAME, name = vGPU profile (grid_a100d-80c), value int: the number of vGPUs with this profile. VM off.
	KindVGPU Kind = "vgpu"
	// KindDeviceGroup: target vm/NAME, name = vendor device group of the VM's host, value bool: true, the VM has the devices of
	// the group. VM off.
	KindDeviceGroup Kind = "device-group"
	// KindNested: target vm/NAME, value bool: nested virtualization (nestedHVEnabled). VM off. Never absent.
	KindNested Kind = "nested"

	// KindPackages: target guest/NAME, name = name of the set ("rdma"), value PackageSpec. Keeper: Restore removes exactly the
	// packages that were newly installed.
	KindPackages Kind = "packages"
	// KindOFED: target guest/NAME, value OFEDSpec: NVIDIA's MLNX_OFED instead of the distribution's RDMA packages and drivers;
	// Partial if its installation by this program was interrupted, Absent if the distribution's packages are installed. Keeper:
	// Restore reinstalls the packages that it removed.
	KindOFED Kind = "ofed"
	// KindBuild: target guest/NAME, name = BuildDriver, BuildPerftest or BuildSamePerftest, value string: the file in the guest,
	// or the URL, from which this program built it; Partial if the build was interrupted. Absent: not built by this program.
	// Keeper.
	KindBuild Kind = "build"
	// KindNouveau: target guest/NAME, value bool (true): a file of this program in /etc/modprobe.d blocks the kernel's own driver
	// nouveau, and nouveau is not loaded; Partial if the file exists and nouveau is loaded. Set reboots the guest if nouveau is
	// loaded. Keeper.
	KindNouveau Kind = "nouveau"
	// KindGPUPersist: target guest/NAME, value bool (true): persistence mode of NVIDIA's driver is on for every GPU; Partial if a
	// unit of this program exists and the mode is off. Keeper.
	KindGPUPersist Kind = "gpu-persistence"
	// KindModules: target guest/NAME, name = name of the set, value []string, the modules loaded, in load order.
	KindModules Kind = "modules"
	// KindPersist: target guest/NAME, value Persist: the configuration that loads the modules at every boot. Keeper.
	KindPersist Kind = "persist"
	// KindAddress: target guest/NAME, name = port group of the adapter, value AddressSpec. The interface is found by the MAC of
	// that adapter when the address is set. Keeper.
	KindAddress Kind = "address"
	// KindARP: target guest/NAME, name = port group of the adapter, value ARPSpec: how its interface treats ARP and incoming
	// packets, now and after each boot; Partial if only one of the two is set. Keeper.
	KindARP Kind = "arp"
	// KindNICName: target guest/NAME, name = MAC of an interface, value string: the name that systemd-udevd assigns to it at each
	// boot, whatever its PCI slot. Keeper.
	KindNICName Kind = "nic-name"
	// KindMemlock: target guest/NAME, value string: "unlimited" or KB. Keeper.
	KindMemlock Kind = "memlock"
	// KindTrafficClass: target guest/NAME, name = port group of the adapter, value int: the traffic class of packets that its
	// RDMA device sends, now and after each boot; Partial if only one of the two is set, or an interrupted attempt left something
	// behind. Keeper.
	KindTrafficClass Kind = "traffic-class"
	// KindPortQoS: target guest/NAME, name = port group of the adapter, or WholeHCA, value QoSSpec: how a port that the guest
	// owns treats the class of RDMA, now and after each boot; Partial if only one of the two is set, or an interrupted attempt
	// left something behind. Keeper.
	KindPortQoS Kind = "port-qos"
	// KindEnvironment: target guest/NAME, value int: the traffic class that the environment of every login sets for applications
	// (see ClassVariables); Partial if the file differs from the class and the GID index of the guest's addresses. Keeper.
	KindEnvironment Kind = "environment"
	// KindImage: target guest/NAME, name = name of a container image, value string: the Dockerfile it was built from. An image
	// that someone else built reads as the empty string. Keeper: Restore gives the name back to the image that had it.
	KindImage Kind = "image"
	// KindPort: target guest/NAME, name = port group of the adapter, value string "PORT_ACTIVE": repairs a port that is down
	// (link up, link down and up, module reload, in this order). A state, not a setting: there is nothing to undo.
	KindPort Kind = "port"
	// KindRestart: target guest/NAME, value bool (true): the guest was restarted during this run, and came back with every interface as
	// it was. A state like KindPort.
	KindRestart Kind = "restart"
)

// ClassVariables returns the environment variables, as NAME=VALUE, that make applications mark their RDMA traffic: the traffic
// class of UCX and NCCL, which create their queue pairs themselves and therefore ignore the default of rdma_cm (OpenUCX FAQ,
// RoCE, "How to specify DSCP priority"; NCCL user guide, NCCL_IB_TC), and the GID index of the RoCE v2 address if gid is not
// negative.
func ClassVariables(class, gid int) []string {
	v := []string{"UCX_IB_TRAFFIC_CLASS=" + strconv.Itoa(class), "NCCL_IB_TC=" + strconv.Itoa(class)}
	if gid >= 0 {
		v = append(v, "NCCL_IB_GID_INDEX="+strconv.Itoa(gid))
	}
	return v
}

// A SwitchSpec is the requested configuration of a DVS. Datacenter is used to create it and is not compared once it exists (Read
// fills it in).
type SwitchSpec struct {
	Datacenter string `json:"datacenter"`
	Version    string `json:"version"`
	Uplinks    int    `json:"uplinks"` // number of uplink ports per host
	MTU        int    `json:"mtu"`
	NIOC       bool   `json:"nioc"`
	Discovery  string `json:"discovery"` // "lldp listen", "cdp listen", "none"
}

// UplinkName returns the name of the nth uplink (from 1) of a DVS that this program creates.
func UplinkName(n int) string { return "Uplink " + strconv.Itoa(n) }

// A PortGroupSpec is the requested configuration of a distributed port group.
type PortGroupSpec struct {
	Switch  string   `json:"switch"`
	VLAN    int      `json:"vlan"`    // 0: untagged
	Active  []string `json:"active"`  // active uplink names; one for PVRDMA
	Binding string   `json:"binding"` // earlyBinding
}

// A MemberSpec is the membership of a host in a DVS.
type MemberSpec struct {
	PNICs []string `json:"pnics"` // in uplink order; a PCI address for a pNIC that appears only after the host's reboot (see Resolver)
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
	ReservationMB int64 `json:"reservation_mb"` // memoryAllocation.reservation; with Locked, the whole memory
}

// An AdapterSpec is the configuration of a virtual adapter.
type AdapterSpec struct {
	Type      string `json:"type"` // pvrdma, sriov, vmxnet3
	PortGroup string `json:"port_group"`
	Switch    string `json:"switch"`
	Protocol  string `json:"protocol,omitempty"` // rocev1, rocev2: pvrdma only
	Start     bool   `json:"start_connected"`
	GuestMTU  bool   `json:"guest_mtu,omitempty"` // sriov only
	PF        string `json:"pf,omitempty"`        // sriov only
}

// A PackageSpec names the packages of a set and which of them are installed; a plan requests all of them.
type PackageSpec struct {
	Installed []string `json:"installed"` // sorted
}

// The names of KindBuild: what is built in a guest from a file.
const (
	BuildDriver   = "nvidia"   // NVIDIA's driver, from its .run file
	BuildPerftest = "perftest" // perftest with CUDA, from its source

	BuildSamePerftest = "perftest-same" // perftest without CUDA, from its source: the same release in all guests
)

// PerftestPrefix returns the installation directory in a guest of a perftest that this program builds; its programs are in bin
// below it. The distribution's perftest stays installed.
func PerftestPrefix(build string) string { return "/opt/" + build }

// An OFEDSpec is the MLNX_OFED of a guest. Archive is what to install it from; it is not compared (Read leaves it empty).
type OFEDSpec struct {
	// as ofed_info -s prints it, MLNX_OFED_LINUX-24.10-1.1.4.0; "" if an installation was interrupted before that
	Version string `json:"version"`
	Archive string `json:"archive,omitempty"` // path in the guest
}

// Persist is the configuration that loads the modules after a reboot.
type Persist struct {
	Modules []string          `json:"modules"`           // in /etc/modules-load.d
	Reload  string            `json:"reload"`            // the module that a unit reloads last at boot, "" if none is needed
	Options map[string]string `json:"options,omitempty"` // modprobe options by module
}

// A PauseSpec is the global pause (802.3x) of a pNIC.
type PauseSpec struct {
	Rx bool `json:"rx"`
	Tx bool `json:"tx"`
}

// A FirmwareImage is the firmware of a card. File is what to write it from; it is not compared (Read leaves it empty). Running is
// not compared either.
type FirmwareImage struct {
	PSID    string `json:"psid"`    // board id: firmware for another board does not fit
	Version string `json:"version"` // 16.35.8008
	File    string `json:"file,omitempty"`
	Running string `json:"running,omitempty"` // the version that the card runs, "" for the same
}

// A VFSpec is the number of VFs that vCenter's own setting requests from a PF.
type VFSpec struct {
	Enabled bool `json:"enabled"`
	VFs     int  `json:"vfs"`
}

// WholeHCA is the name of guest settings for an RDMA card that is passed through whole. Other settings are named by the port
// group of the adapter, but such a card has no port group; Guest.Card finds its interface. If a VM has several such cards,
// HCAName makes the names.
const WholeHCA = "hca"

// HCAName returns the name of guest settings for one of several RDMA cards that are passed through whole, by the card's PCI
// address on the host: "hca 0000:3b:00.0".
func HCAName(pci string) string { return WholeHCA + " " + strings.ToLower(pci) }

// OfHCA reports whether a name is that of a whole card, and returns its PCI address on the host; "" if the VM has only one.
func OfHCA(name string) (pci string, passthrough bool) {
	pci, several := strings.CutPrefix(name, WholeHCA+" ")
	if !several || strings.Count(pci, ":") != 2 {
		return "", name == WholeHCA
	}
	return pci, true
}

// The backings of an assigned device.
const (
	FixedBacking   = "fixed"   // this device: the VM stays on its host
	DynamicBacking = "dynamic" // any free device of its model, on any host
	VGPUBacking    = "vgpu"    // a share that the vGPU manager provides (KindVGPU)
)

// SharedDirect is the graphics type of GPUs that provide vGPUs (HostGraphicsConfigGraphicsType in the vSphere Web Services API;
// "Shared Direct" in the vSphere Client).
const SharedDirect = "sharedDirect"

// A GraphicsSpec is the graphics type of a host, and of individual GPUs with a different type, by PCI address.
type GraphicsSpec struct {
	Default string            `json:"default"`
	Devices map[string]string `json:"devices,omitempty"`
}

// A DeviceSpec is a PCI device that is passed through whole.
type DeviceSpec struct {
	Backing string `json:"backing"` // fixed, dynamic
	Vendor  string `json:"vendor"`  // hex, 10de
	Device  string `json:"device"`  // hex, 20b5
}

// DHCP is the CIDR of an AddressSpec whose address comes from DHCP.
const DHCP = "dhcp"

// An AddressSpec is the persistent configuration of the interface behind an adapter: a static address, or DHCP.
type AddressSpec struct {
	CIDR string `json:"cidr"` // 192.168.50.11/24, or DHCP
	MTU  int    `json:"mtu"`
	// Table is the routing table for packets from the address, and the priority of its rule, if several interfaces are in one
	// subnet; 0: none, because no other interface is in the subnet.
	Table int `json:"table,omitempty"`
}

// An ARPSpec holds sysctls of an interface under net.ipv4.conf (kernel, Documentation/networking/ip-sysctl.rst).
type ARPSpec struct {
	Ignore   int `json:"arp_ignore"`   // 1: reply only for its own addresses
	Announce int `json:"arp_announce"` // 2: send requests with its own address
	RPFilter int `json:"rp_filter"`    // 2: accept packets whose source is reachable through any interface
}

// OneSubnet returns the sysctls for interfaces that share a subnet with others of their guest. By default, Linux answers ARP
// requests for all addresses on all of them (ip-sysctl.rst, arp_ignore, arp_announce, rp_filter; libfabric wiki, "Verbs Provider
// on Multi-NIC Systems").
func OneSubnet() ARPSpec { return ARPSpec{Ignore: 1, Announce: 2, RPFilter: 2} }

// SwitchMark is in the description of every DVS that this program creates. A switch without it belongs to someone else: it is
// completed only if nothing else uses it, and its NIOC is never disabled.
const SwitchMark = "made by rdma-setup"

// Ours reports whether this program created the switch.
func (s *Switch) Ours() bool { return strings.Contains(strings.ToLower(s.Note), SwitchMark) }
