package backends

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
)

// A Guest is what was read from a Linux guest over SSH. If the guest could not be read, only VM and Error are set.
type Guest struct {
	VM      string    `json:"vm"`
	Address string    `json:"address"` // host:port that was dialed
	User    string    `json:"user"`
	Error   string    `json:"error,omitempty"` // why the guest could not be read
	ErrKind ErrorKind `json:"error_kind,omitempty"`
	Hint    string    `json:"hint,omitempty"`

	OS      string   `json:"os,omitempty"`      // os-release ID: ubuntu, rhel, ...
	Version string   `json:"version,omitempty"` // VERSION_ID
	Like    []string `json:"like,omitempty"`    // ID_LIKE
	Pretty  string   `json:"pretty,omitempty"`
	Kernel  string   `json:"kernel,omitempty"` // uname -r
	Arch    string   `json:"arch,omitempty"`
	Sudo    string   `json:"sudo,omitempty"` // root, nopasswd, password, none

	SudoError string `json:"sudo_error,omitempty"` // why Sudo is none; Hint has the remedy

	PackageManager string `json:"package_manager,omitempty"` // apt, dnf, yum
	// installed versions of the packages that matter; a missing key means not installed; nil: they cannot be read
	Packages map[string]string `json:"packages,omitzero"`
	Loaded   []string          `json:"loaded,omitempty"` // loaded kernel modules, limited to those that RDMA needs
	// those of Loaded that are built into the kernel and cannot be unloaded
	BuiltIn   []string `json:"built_in,omitempty"`
	Available []string `json:"available,omitzero"`   // kernel modules known to modinfo or built into the kernel; nil: not read
	NetConfig string   `json:"net_config,omitempty"` // netplan, networkmanager, ifcfg
	// NetInvalid is a file with which the guest's network is not configured at its next boot, or is another one than now. NetRivals are
	// the files that prevent an address of this program on an interface, by its name; also by names that files mention and a new adapter
	// may get. NetShared is the file of an earlier release that changes a stanza of another file.
	NetInvalid *FileProblem           `json:"net_invalid,omitempty"`
	NetRivals  map[string]FileProblem `json:"net_rivals,omitempty"`
	NetShared  *FileProblem           `json:"net_shared,omitempty"`
	Interfaces []Interface            `json:"interfaces,omitempty"`
	// numbers above 255 that tables and rules use, with the interface that they belong to, or ""
	RouteNumbers   map[int]string `json:"route_numbers,omitempty"`
	RDMA           []VerbsDevice  `json:"rdma,omitempty"`
	MemlockKB      int64          `json:"memlock_kb,omitempty"`      // -1: unlimited
	Perftest       string         `json:"perftest,omitempty"`        // protocol version of ib_send_bw, "" if it is missing
	MOFED          string         `json:"mofed,omitempty"`           // ofed_info -s, "" when there is none
	OFEDUnfinished bool           `json:"ofed_unfinished,omitempty"` // an installation of MLNX_OFED by this program was interrupted
	// traffic class for UCX and NCCL in the environment of logins; nil: none
	AppClass       *int     `json:"app_class,omitempty"`
	Nouveau        *Nouveau `json:"nouveau,omitempty"`          // nil: not loaded, and not blocked by a file of this program
	GPUUnit        GPUUnit  `json:"gpu_unit,omitempty"`         // of this program, which sets persistence mode at boot
	AppClassPartly bool     `json:"app_class_partly,omitempty"` // a file of this program exists but sets a different class
	NoQoSTool      bool     `json:"no_qos_tool,omitempty"`      // neither mlnx_qos nor dcb is installed
	Persist        Persist  `json:"persist"`

	// The following fields are for checks and for GPUs; nil (also for Headers and SecureBoot) means not read.
	PCI []GuestDevice `json:"pci,omitzero"` // lspci -Dnn: network and InfiniBand controllers
	// lines of dmesg since boot: Call Trace, failures of vmw_pvrdma or mlx5_core, modules rejected because of their signature
	KernelLog  []string `json:"kernel_log,omitzero"`
	Headers    *bool    `json:"headers,omitempty"`     // the headers of the running kernel are installed
	SecureBoot *bool    `json:"secure_boot,omitempty"` // mokutil --sb-state
	// difference between its clock and ours in seconds, beyond the duration of the request
	ClockSkew *int           `json:"clock_skew_s,omitempty"`
	HugePages *int           `json:"huge_pages,omitempty"` // HugePages_Total
	Firewall  *GuestFirewall `json:"guest_firewall,omitempty"`
	NVIDIA    *NVIDIA        `json:"nvidia,omitempty"`
	CUDATests *CUDAPerftest  `json:"cuda_perftest,omitempty"` // nil: no perftest with CUDA is installed
	// protocol version of the perftest release that all guests share (BuildSamePerftest)
	OwnTests   string           `json:"own_perftest,omitempty"`
	Built      map[string]Value `json:"built,omitzero"`        // what this program built from source files, as values of KindBuild
	Archives   map[string]bool  `json:"archives,omitzero"`     // the files of Options.Archives, and whether each can be read
	BuildTools []string         `json:"build_tools,omitzero"`  // those installed of gcc, make, dkms and the headers that perftest needs
	CUDAHeader string           `json:"cuda_header,omitempty"` // path of cuda.h
	PeerAPI    *bool            `json:"peer_api,omitempty"`    // ib_core supports peer memory (MLNX_OFED, Ubuntu's kernels)
	Containers []Container      `json:"containers,omitzero"`   // running containers that use RDMA or GPUs
	Forwarding *Forwarding      `json:"forwarding,omitempty"`
	Engine     *Engine          `json:"engine,omitempty"` // container engine; nil: none answers
}

// Tests returns the protocol version of the perftest that the guest measures with: the release that all guests share, else that
// of its distribution; "" if it has none.
func (g *Guest) Tests() string { return cmp.Or(g.OwnTests, g.Perftest) }

// A GuestDevice is a row of lspci in a guest.
type GuestDevice struct {
	Address string `json:"address"` // 0000:13:00.1
	Vendor  string `json:"vendor"`  // 15ad
	Device  string `json:"device"`  // 0820
	Name    string `json:"name"`    // VMware Paravirtual RDMA controller
}

// A GuestFirewall is the state of ufw, firewalld or nftables in a guest.
type GuestFirewall struct {
	Kind   string   `json:"kind"` // ufw, firewalld, nftables, "" when there is none
	Active bool     `json:"active"`
	Open   []string `json:"open,omitempty"` // of the ports that RDMA tests need, those that are open: "18515/tcp", "4791/udp", "all"
}

// NVIDIA is what the NVIDIA driver in a guest reports.
type NVIDIA struct {
	GPUs    []string   `json:"gpus"`              // names listed by nvidia-smi -L
	Devices []GuestGPU `json:"devices,omitempty"` // details from nvidia-smi -q, in the same order
	Driver  string     `json:"driver,omitempty"`  // version
	Error   string     `json:"error,omitempty"`   // why nvidia-smi failed
	DMABuf  bool       `json:"dma_buf,omitempty"` // the driver exports DMA-BUF: open kernel modules, kernel 5.12 or later
	Peermem string     `json:"peermem,omitempty"` // nvidia_peermem or nv_peer_mem if loaded
	// VGPUDriver tells the vGPU guest driver, which brings nvidia-gridd, from the one for whole GPUs; nil: not read.
	VGPUDriver *bool `json:"vgpu_guest_driver,omitempty"`
	Token      bool  `json:"license_token,omitempty"`    // a client configuration token for vGPU licenses is installed
	NoToken    bool  `json:"no_license_token,omitempty"` // there is none, and gridd.conf names neither another place nor a server
	// LicenseServers are the addresses in those tokens; LicenseUnknown says why there are none: "proxy", "other form".
	LicenseServers []LicenseServer   `json:"license_servers,omitzero"`
	LicenseUnknown string            `json:"license_unknown,omitempty"`
	P2P            map[string]string `json:"p2p,omitempty"`      // GPU to GPU by nvidia-smi topo -p2p r, "GPU0 GPU1": OK, CNS, GNS, TNS, NS, U
	Topology       map[string]string `json:"topology,omitempty"` // NIC to GPU by nvidia-smi topo -m, "mlx5_0 GPU0": PIX, PXB, PHB, NODE, SYS
}

// A LicenseServer is a port of a license server for vGPUs.
type LicenseServer struct {
	Host string `json:"license_host"`
	Port string `json:"port"`
	Open bool   `json:"open"` // the guest can connect to it
}

// String returns "host:port".
func (s LicenseServer) String() string { return net.JoinHostPort(s.Host, s.Port) }

// A GuestGPU is one GPU as the guest sees it. Its index is its position in the list sorted by PCI address.
type GuestGPU struct {
	Name     string `json:"name"`
	PCI      string `json:"pci"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
	BAR1MB   int64  `json:"bar1_mb,omitempty"`
	VGPU     bool   `json:"vgpu,omitempty"`    // a vGPU, not a whole GPU
	License  string `json:"license,omitempty"` // license state of a vGPU as nvidia-smi -q prints it: "Licensed (Expiry: ...)"

	Persistent *bool `json:"persistence_mode,omitempty"` // nil: not reported
}

// Unlicensed reports whether a vGPU is slowed down because it has no license: not in its first minutes, when it is "Unlicensed
// (Unrestricted)" (NVIDIA, Virtual GPU Client Licensing User Guide).
func (g GuestGPU) Unlicensed() bool {
	return g.VGPU && g.License != "" && !strings.HasPrefix(g.License, "Licensed") && !strings.Contains(g.License, "Unrestricted")
}

// CUDAPerftest is a perftest that was built with CUDA.
type CUDAPerftest struct {
	Dir    string `json:"dir,omitempty"`     // its directory, "" if it is in the PATH
	DMABuf bool   `json:"dma_buf,omitempty"` // it supports --use_cuda_dmabuf
}

// A Container is a running container that may use RDMA.
type Container struct {
	Name string `json:"name"`
	Libraries
	Verbs   int  `json:"verbs"`    // number of RDMA devices that ibv_devinfo lists inside
	Devices bool `json:"devices"`  // /dev/infiniband exists
	IPCLock bool `json:"ipc_lock"` // CAP_IPC_LOCK
	HostNet bool `json:"host_net"` // uses the network namespace of the guest
}

// Libraries are the verbs libraries in a container or an image.
type Libraries struct {
	Version string `json:"libibverbs,omitempty"` // version of libibverbs by the package manager inside; "": not installed or unknown
	MOFED   bool   `json:"mofed"`                // they come from MLNX_OFED
	PVRDMA  bool   `json:"pvrdma,omitempty"`     // they include the provider of vmw_pvrdma
}

// An Engine runs containers in a guest. Images maps names with tags, without the engine's own registry, to the Dockerfile that
// rdma-setup built the image from; "" if someone else built it.
type Engine struct {
	Name   string            `json:"name"` // docker, podman, nerdctl
	Images map[string]string `json:"images,omitempty"`
	// Inside holds the libraries of the images of guest.Options.Images. Images that could not be inspected are missing.
	Inside map[string]Libraries `json:"inside,omitempty"`
}

// Forwarding holds a guest's packet forwarding settings, which containers of Kubernetes need.
type Forwarding struct {
	Kubernetes bool   `json:"kubernetes"`       // a kubelet runs in the guest
	IPForward  bool   `json:"ip_forward"`       // net.ipv4.ip_forward
	Policy     string `json:"policy,omitempty"` // policy of the chain FORWARD: ACCEPT, DROP
}

// A FileProblem is what is wrong with a file of a guest's network configuration.
type FileProblem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"` // 0: the file as a whole
	Why    string `json:"why"`
	Remedy string `json:"remedy,omitempty"`
}

// String returns "FILE, line N: WHY".
func (p FileProblem) String() string {
	switch {
	case p.File == "":
		return p.Why
	case p.Line > 0:
		return fmt.Sprintf("%s, line %d: %s", p.File, p.Line, p.Why)
	}
	return p.File + ": " + p.Why
}

// NetComing returns the file that prevents an address of this program on an adapter that the guest gets later, by any name.
func (g *Guest) NetComing() *FileProblem {
	for _, name := range slices.Sorted(maps.Keys(g.NetRivals)) {
		if slices.ContainsFunc(g.Interfaces, func(i Interface) bool { return i.Name == name }) {
			continue
		}
		p := g.NetRivals[name]
		if name != "" {
			p.Why += " (the new adapter may be called " + name + ")"
		}
		return &p
	}
	return nil
}

// An Interface is a network interface in a guest.
type Interface struct {
	Name       string   `json:"name"`
	MAC        string   `json:"mac"`
	MTU        int      `json:"mtu"`
	Up         bool     `json:"up"`
	Virtual    bool     `json:"virtual,omitempty"`   // it has no device: a VLAN, bond or bridge, which may have the MAC of an adapter
	Addresses  []string `json:"addresses,omitempty"` // CIDRs, IPv4 and IPv6 without link-local
	DHCP       bool     `json:"dhcp,omitempty"`
	Persistent bool     `json:"persistent,omitempty"` // addresses and MTU persist across reboots
	Config     string   `json:"config,omitempty"`     // the file or connection that configures the interface
	Duplicate  string   `json:"duplicate,omitempty"`  // MAC of another station that answered arping -D for its address
	// Table is the routing table that is configured and active for packets from the interface's address; see AddressSpec.
	Table   int      `json:"table,omitempty"`
	ARP     ARPSpec  `json:"arp,omitzero"`
	ARPKept *ARPSpec `json:"arp_kept,omitempty"` // values that a file of this program sets at each boot; nil: no file
}

// ARPValue returns the value of KindARP: Absent if there is no file of this program. i may be nil.
func (i *Interface) ARPValue() Value {
	switch {
	case i == nil || i.ARPKept == nil:
		return Absent
	case *i.ARPKept != i.ARP:
		return Partial(i.ARP)
	}
	return ValueOf(i.ARP)
}

// Address returns the persistent address of an interface, the value of KindAddress: the wanted address if it is one of several,
// DHCP if that is wanted and active, else the first address; Absent if there is none. The routing table is included only if one
// is wanted: tables of others do not concern this program. i may be nil.
func (i *Interface) Address(want AddressSpec) Value {
	if i == nil || !i.Persistent || len(i.Addresses) == 0 {
		return Absent
	}
	cidr := i.Addresses[0]
	if slices.Contains(i.Addresses, want.CIDR) || want.CIDR == DHCP && i.DHCP {
		cidr = want.CIDR
	}
	now := AddressSpec{CIDR: cidr, MTU: i.MTU}
	if want.Table != 0 {
		now.Table = i.Table
	}
	return ValueOf(now)
}

// A VerbsDevice is an RDMA device in a guest (rocep19s0f1).
type VerbsDevice struct {
	Name      string  `json:"name"`
	Driver    string  `json:"driver,omitempty"` // vmw_pvrdma, mlx5_core, rxe
	Interface string  `json:"interface,omitempty"`
	MAC       string  `json:"mac,omitempty"`
	Bridge    string  `json:"bridge,omitempty"` // PCI address, in the guest, of the bridge above it
	State     string  `json:"state"`            // PORT_ACTIVE, PORT_DOWN, ...
	LinkLayer string  `json:"link_layer,omitempty"`
	ActiveMTU int     `json:"active_mtu,omitempty"`
	RateGbps  float64 `json:"rate_gbps,omitempty"`
	Firmware  string  `json:"firmware,omitempty"`
	Class     *int    `json:"traffic_class,omitempty"`      // tc/1/traffic_class or the default of rdma_cm; nil: not read
	ClassKept bool    `json:"traffic_class_kept,omitempty"` // a unit of this program sets it at each boot
	// ClassPartly means that a unit of this program exists but the class is not active, or that an interrupted attempt left
	// something behind.
	ClassPartly bool `json:"traffic_class_partly,omitempty"`
	// command that runs a program on the device's NUMA node; "": only one node, unknown node, or no such command
	Bind string   `json:"bind,omitempty"`
	QoS  *PortQoS `json:"qos,omitempty"` // of a port that the guest owns; nil: not read, or the guest does not own the port
	GIDs []GID    `json:"gids,omitempty"`
}

// A PortQoS is how a port treats priorities, as reported by the tools in the guest.
type PortQoS struct {
	Trust   string      `json:"trust"`            // dscp or pcp
	PFC     []int       `json:"pfc"`              // priorities with PFC
	DSCP    map[int]int `json:"dscp,omitempty"`   // priority by DSCP
	Buffers []int       `json:"buffers,omitzero"` // receive buffer by priority; nil: not reported
	ECN     []int       `json:"ecn,omitzero"`     // priorities with ECN enabled on both sides; nil: not reported
	Kept    *QoSSpec    `json:"kept,omitempty"`   // what a unit of this program sets after each boot
	Partly  bool        `json:"partly,omitempty"` // Kept is not active, or an interrupted attempt left something behind
}

// A QoSSpec is the requested QoS of a port: PFC on Priority alone, DSCP mapped to that priority, and optionally ECN on it.
type QoSSpec struct {
	Priority int  `json:"priority"`
	DSCP     int  `json:"dscp"`
	ECN      bool `json:"ecn,omitempty"` // false: ECN is not changed
}

// Value returns the value of KindPortQoS; a nil PortQoS is Absent.
func (q *PortQoS) Value() Value {
	switch {
	case q == nil, q.Kept == nil && !q.Partly:
		return Absent
	case q.Partly:
		return Partial(nil)
	}
	return ValueOf(*q.Kept)
}

// Meets reports whether a port is configured as requested. If ECN cannot be read, the firmware's default is assumed.
func (q PortQoS) Meets(s QoSSpec) bool {
	p, mapped := q.DSCP[s.DSCP]
	return q.Trust == "dscp" && mapped && p == s.Priority && slices.Equal(q.PFC, []int{s.Priority}) &&
		(!s.ECN || q.ECN == nil || slices.Contains(q.ECN, s.Priority))
}

// Shares reports whether a priority shares a receive buffer with lossy priorities.
func (q PortQoS) Shares(priority int) bool {
	for p, b := range q.Buffers {
		if p != priority && priority < len(q.Buffers) && b == q.Buffers[priority] && !slices.Contains(q.PFC, p) {
			return true
		}
	}
	return false
}

// A GID is one entry of a port's GID table.
type GID struct {
	Index  int    `json:"index"`
	GID    string `json:"gid"`
	Type   string `json:"type"` // "IB/RoCE v1", "RoCE v2"
	IPv4   string `json:"ipv4,omitempty"`
	Netdev string `json:"netdev,omitempty"`
}

// HasImage reports whether the guest's container engine has an image.
func (g *Guest) HasImage(name string) bool {
	if g == nil || g.Engine == nil {
		return false
	}
	_, there := g.Engine.Images[name]
	return there
}

// Inside returns the verbs libraries of an image; false if the image was not inspected.
func (g *Guest) Inside(image string) (Libraries, bool) {
	if g == nil || g.Engine == nil {
		return Libraries{}, false
	}
	l, known := g.Engine.Inside[image]
	return l, known
}

// String says what the libraries mean for PVRDMA.
func (l Libraries) String() string {
	switch {
	case l.PVRDMA:
		return "libibverbs " + l.Version + " with the provider of PVRDMA"
	case l.MOFED:
		return strings.TrimSpace("MLNX_OFED's libraries "+l.Version) + ", which do not support PVRDMA: no container of it sees the device"
	case l.Version != "":
		return "libibverbs " + l.Version + " without the provider of PVRDMA: no container of it sees the device"
	}
	return "no libibverbs: no container of it can use RDMA"
}

// Interface returns a guest's interface by MAC, or nil.
func (g *Guest) Interface(mac string) *Interface {
	return find(g.Interfaces, func(i *Interface) bool { return i.MAC == mac })
}

// Verbs returns a guest's RDMA device by the MAC of its interface, or nil.
func (g *Guest) Verbs(mac string) *VerbsDevice {
	return find(g.RDMA, func(d *VerbsDevice) bool { return d.MAC == mac })
}

// Card returns the RDMA device of a NIC that is passed through: an mlx5 device that belongs to none of the VM's adapters. If there
// are several, it returns the one with an active port; nil if none or more than one is left.
func (g *Guest) Card(v *VM) *VerbsDevice {
	var all, active []*VerbsDevice
	for i := range g.RDMA {
		d := &g.RDMA[i]
		if d.Driver != "mlx5_core" || find(v.Adapters, func(a *Adapter) bool { return a.MAC == d.MAC }) != nil {
			continue
		}
		all = append(all, d)
		if d.State == "PORT_ACTIVE" {
			active = append(active, d)
		}
	}
	switch {
	case len(all) == 1:
		return all[0]
	case len(active) == 1:
		return active[0]
	}
	return nil
}

// CardAt returns the RDMA device of a passed-through card, by a name made by HCAName: the device behind the bridge that the slot of
// the VM's device maps to. For any other name it is Card.
func (g *Guest) CardAt(v *VM, name string) *VerbsDevice {
	pci, _ := OfHCA(name)
	if pci == "" {
		return g.Card(v)
	}
	given := find(v.Devices, func(d *AssignedDevice) bool { return strings.EqualFold(d.PCI, pci) })
	if given == nil || given.GuestBridge() == "" {
		return nil
	}
	return find(g.RDMA, func(d *VerbsDevice) bool { return d.Bridge == given.GuestBridge() })
}
