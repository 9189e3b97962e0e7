package backends

import (
	"cmp"
	"slices"
	"strings"
)

// A Guest is what a Linux guest says of itself over SSH. A guest that could not be asked has only VM and Error.
type Guest struct {
	VM      string    `json:"vm"`
	Address string    `json:"address"` // host:port that was dialled
	User    string    `json:"user"`
	Error   string    `json:"error,omitempty"` // why it could not be asked
	ErrKind ErrorKind `json:"error_kind,omitempty"`
	Hint    string    `json:"hint,omitempty"`

	OS      string   `json:"os,omitempty"`      // os-release ID: ubuntu, rhel, ...
	Version string   `json:"version,omitempty"` // VERSION_ID
	Like    []string `json:"like,omitempty"`    // ID_LIKE
	Pretty  string   `json:"pretty,omitempty"`
	Kernel  string   `json:"kernel,omitempty"` // uname -r
	Arch    string   `json:"arch,omitempty"`
	Sudo    string   `json:"sudo,omitempty"` // root, nopasswd, password, none

	SudoError string `json:"sudo_error,omitempty"` // why Sudo is none; Hint says what to do about it

	PackageManager string            `json:"package_manager,omitempty"` // apt, dnf, yum
	Packages       map[string]string `json:"packages,omitzero"`         // installed version of each package that matters; absent: not installed
	Loaded         []string          `json:"loaded,omitempty"`          // kernel modules loaded, as far as RDMA needs them
	Available      []string          `json:"available,omitempty"`       // kernel modules that modinfo finds
	NetConfig      string            `json:"net_config,omitempty"`      // netplan, networkmanager, ifcfg
	Interfaces     []Interface       `json:"interfaces,omitempty"`
	RouteNumbers   map[int]string    `json:"route_numbers,omitempty"` // of tables and rules in use, above 255: the interface they are for, or ""
	RDMA           []VerbsDevice     `json:"rdma,omitempty"`
	MemlockKB      int64             `json:"memlock_kb,omitempty"`       // -1: unlimited
	Perftest       string            `json:"perftest,omitempty"`         // protocol version of ib_send_bw, "" when missing
	MOFED          string            `json:"mofed,omitempty"`            // ofed_info -s, "" when there is none
	OFEDUnfinished bool              `json:"ofed_unfinished,omitempty"`  // an installation of MOFED by this program did not come to its end
	AppClass       *int              `json:"app_class,omitempty"`        // traffic class that the environment of logins tells UCX and NCCL; nil: none
	Nouveau        *Nouveau          `json:"nouveau,omitempty"`          // nil: not loaded, and nothing of ours keeps it from GPUs
	AppClassPartly bool              `json:"app_class_partly,omitempty"` // a file of this program is there and tells something else
	NoQoSTool      bool              `json:"no_qos_tool,omitempty"`      // neither mlnx_qos nor dcb is there
	Persist        Persist           `json:"persist"`

	// What follows is for checks and for GPUs; nil (for Headers and SecureBoot too) says that it was not read.
	PCI        []GuestDevice    `json:"pci,omitzero"`           // lspci -Dnn, network and InfiniBand controllers
	KernelLog  []string         `json:"kernel_log,omitzero"`    // lines of dmesg since boot: Call Trace, vmw_pvrdma or mlx5_core that failed, modules rejected for their signature
	Headers    *bool            `json:"headers,omitempty"`      // headers of the running kernel are installed
	SecureBoot *bool            `json:"secure_boot,omitempty"`  // mokutil --sb-state
	ClockSkew  *int             `json:"clock_skew_s,omitempty"` // how far its clock is off ours, in seconds beyond what asking took
	HugePages  *int             `json:"huge_pages,omitempty"`   // HugePages_Total
	Firewall   *GuestFirewall   `json:"guest_firewall,omitempty"`
	NVIDIA     *NVIDIA          `json:"nvidia,omitempty"`
	CUDATests  *CUDAPerftest    `json:"cuda_perftest,omitempty"` // nil: no perftest here was built with CUDA
	OwnTests   string           `json:"own_perftest,omitempty"`  // protocol version of the perftest that is the same in all guests (BuildSamePerftest)
	Built      map[string]Value `json:"built,omitzero"`          // what this program built from files, as the values of KindBuild
	Archives   map[string]bool  `json:"archives,omitzero"`       // the files of Options.Archives: whether each can be read
	BuildTools []string         `json:"build_tools,omitzero"`    // of gcc, make, dkms and the headers that perftest takes, those that are there
	CUDAHeader string           `json:"cuda_header,omitempty"`   // path of cuda.h
	PeerAPI    *bool            `json:"peer_api,omitempty"`      // ib_core lets peer memory register (MLNX_OFED, Ubuntu's kernels)
	Containers []Container      `json:"containers,omitzero"`     // running ones that use RDMA or GPUs
	Forwarding *Forwarding      `json:"forwarding,omitempty"`
	Engine     *Engine          `json:"engine,omitempty"` // of containers; nil: none answers
}

// Tests is the protocol version of the perftest that the guest measures with: one that is the same in all guests before that of
// its distribution; "" if it has none.
func (g *Guest) Tests() string { return cmp.Or(g.OwnTests, g.Perftest) }

// A GuestDevice is a row of lspci in a guest.
type GuestDevice struct {
	Address string `json:"address"` // 0000:13:00.1
	Vendor  string `json:"vendor"`  // 15ad
	Device  string `json:"device"`  // 0820
	Name    string `json:"name"`    // VMware Paravirtual RDMA controller
}

// A GuestFirewall is ufw, firewalld or nftables in a guest.
type GuestFirewall struct {
	Kind   string   `json:"kind"` // ufw, firewalld, nftables, "" when there is none
	Active bool     `json:"active"`
	Open   []string `json:"open,omitempty"` // "18515/tcp", "4791/udp", "all": of what RDMA tests need, what is let in
}

// NVIDIA is what the NVIDIA driver in a guest says.
type NVIDIA struct {
	GPUs     []string          `json:"gpus"`                    // names that nvidia-smi -L lists
	Devices  []GuestGPU        `json:"devices,omitempty"`       // what nvidia-smi -q tells of them, in the same order
	Driver   string            `json:"driver,omitempty"`        // version
	Error    string            `json:"error,omitempty"`         // why nvidia-smi failed
	DMABuf   bool              `json:"dma_buf,omitempty"`       // the driver exports DMA-BUF: open kernel modules, kernel 5.12 or later
	Peermem  string            `json:"peermem,omitempty"`       // nvidia_peermem or nv_peer_mem where loaded
	Token    bool              `json:"license_token,omitempty"` // a client configuration token for vGPU licenses is there
	P2P      map[string]string `json:"p2p,omitempty"`           // GPU to GPU by nvidia-smi topo -p2p r, "GPU0 GPU1": OK, CNS, GNS, TNS, NS, U
	Topology map[string]string `json:"topology,omitempty"`      // NIC to GPU by nvidia-smi topo -m, "mlx5_0 GPU0": PIX, PXB, PHB, NODE, SYS
}

// A GuestGPU is one GPU as a guest sees it; its index is its place in the list, by PCI address.
type GuestGPU struct {
	Name     string `json:"name"`
	PCI      string `json:"pci"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
	BAR1MB   int64  `json:"bar1_mb,omitempty"`
	VGPU     bool   `json:"vgpu,omitempty"`    // a share of a GPU, not the whole
	License  string `json:"license,omitempty"` // of a vGPU, as nvidia-smi -q tells it: "Licensed (Expiry: ...)"

	Persistent *bool `json:"persistence_mode,omitempty"` // nil: not reported
}

// CUDAPerftest is a perftest that was built with CUDA.
type CUDAPerftest struct {
	Dir    string `json:"dir,omitempty"`     // where it is, "" for the PATH
	DMABuf bool   `json:"dma_buf,omitempty"` // it knows --use_cuda_dmabuf
}

// A Container is a running container that may use RDMA.
type Container struct {
	Name string `json:"name"`
	Libraries
	Verbs   int  `json:"verbs"`    // RDMA devices that ibv_devinfo lists inside
	Devices bool `json:"devices"`  // /dev/infiniband is there
	IPCLock bool `json:"ipc_lock"` // CAP_IPC_LOCK
	HostNet bool `json:"host_net"` // runs in the guest's own network
}

// Libraries are the verbs libraries inside a container or an image.
type Libraries struct {
	Version string `json:"libibverbs,omitempty"` // of libibverbs by the package manager inside; "": none, or not known there
	MOFED   bool   `json:"mofed"`                // they are MLNX_OFED's
	PVRDMA  bool   `json:"pvrdma,omitempty"`     // the provider of vmw_pvrdma is among them
}

// An Engine runs containers in a guest. Its images are by name with tag, the engine's own registry left out; the value is the
// Dockerfile that rdma-setup built them by, "" if somebody else has made them.
type Engine struct {
	Name   string            `json:"name"` // docker, podman, nerdctl
	Images map[string]string `json:"images,omitempty"`
	// Inside tells what the images of guest.Options.Images hold; an image that could not be looked into is not in it.
	Inside map[string]Libraries `json:"inside,omitempty"`
}

// Forwarding is how a guest passes packets on, which containers of Kubernetes need.
type Forwarding struct {
	Kubernetes bool   `json:"kubernetes"`       // a kubelet runs here
	IPForward  bool   `json:"ip_forward"`       // net.ipv4.ip_forward
	Policy     string `json:"policy,omitempty"` // of the chain FORWARD: ACCEPT, DROP
}

// An Interface is a network interface in a guest.
type Interface struct {
	Name       string   `json:"name"`
	MAC        string   `json:"mac"`
	MTU        int      `json:"mtu"`
	Up         bool     `json:"up"`
	Virtual    bool     `json:"virtual,omitempty"`   // no device is behind it: a VLAN, bond or bridge, which may have the MAC of an adapter
	Addresses  []string `json:"addresses,omitempty"` // CIDRs, IPv4 and IPv6 without link-local
	DHCP       bool     `json:"dhcp,omitempty"`
	Persistent bool     `json:"persistent,omitempty"` // addresses and MTU come back after a reboot
	Config     string   `json:"config,omitempty"`     // the file or connection that configures it
	Duplicate  string   `json:"duplicate,omitempty"`  // MAC that answered arping -D for its address
	// Table is the routing table that its configuration sends packets from its address by, where that is in force; see AddressSpec.
	Table   int      `json:"table,omitempty"`
	ARP     ARPSpec  `json:"arp,omitzero"`
	ARPKept *ARPSpec `json:"arp_kept,omitempty"` // what a file of this program sets at each boot; nil: no file
}

// ARPValue is the value of KindARP: Absent without a file of this program. i may be nil.
func (i *Interface) ARPValue() Value {
	switch {
	case i == nil || i.ARPKept == nil:
		return Absent
	case *i.ARPKept != i.ARP:
		return Partial(i.ARP)
	}
	return ValueOf(i.ARP)
}

// Address is what an interface keeps over a reboot, the value of KindAddress: the wanted address where it is one of several, DHCP
// where that is wanted and in force, else the first address; Absent without any. Its routing table is told where one is wanted: other
// people's are no matter of this program. i may be nil.
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
	Bridge    string  `json:"bridge,omitempty"` // PCI address, in the guest, of the bridge that it is behind
	State     string  `json:"state"`            // PORT_ACTIVE, PORT_DOWN, ...
	LinkLayer string  `json:"link_layer,omitempty"`
	ActiveMTU int     `json:"active_mtu,omitempty"`
	RateGbps  float64 `json:"rate_gbps,omitempty"`
	Firmware  string  `json:"firmware,omitempty"`
	Class     *int    `json:"traffic_class,omitempty"`      // tc/1/traffic_class or the default of rdma_cm; nil: not read
	ClassKept bool    `json:"traffic_class_kept,omitempty"` // it comes back after a boot, by a unit of this program
	// ClassPartly tells that a unit of this program is there and the class is not in force, or that an attempt has left
	// something.
	ClassPartly bool     `json:"traffic_class_partly,omitempty"`
	Bind        string   `json:"bind,omitempty"` // command that runs a program on the device's NUMA node; "": one node, none known, or no such command
	QoS         *PortQoS `json:"qos,omitempty"`  // of a port that the guest owns; nil: not read, or somebody else's
	GIDs        []GID    `json:"gids,omitempty"`
}

// A PortQoS is how a port treats priorities, as far as the tools in the guest tell.
type PortQoS struct {
	Trust   string      `json:"trust"`            // dscp or pcp
	PFC     []int       `json:"pfc"`              // priorities that are paused, not dropped
	DSCP    map[int]int `json:"dscp,omitempty"`   // priority by DSCP
	Buffers []int       `json:"buffers,omitzero"` // receive buffer by priority; nil: not reported
	ECN     []int       `json:"ecn,omitzero"`     // priorities that take part in ECN on both sides; nil: not reported
	Kept    *QoSSpec    `json:"kept,omitempty"`   // what a unit of this program sets after each boot
	Partly  bool        `json:"partly,omitempty"` // that is not in force, or an attempt has left something
}

// A QoSSpec is how a port is to treat the class of RDMA: PFC for its priority alone, which the DSCP leads to, and ECN in it.
type QoSSpec struct {
	Priority int  `json:"priority"`
	DSCP     int  `json:"dscp"`
	ECN      bool `json:"ecn,omitempty"` // false: ECN is left as it is
}

// Value is that of KindPortQoS; a nil PortQoS reads as Absent.
func (q *PortQoS) Value() Value {
	switch {
	case q == nil, q.Kept == nil && !q.Partly:
		return Absent
	case q.Partly:
		return Partial(nil)
	}
	return ValueOf(*q.Kept)
}

// Meets reports whether a port does what is requested. ECN that no file tells is the firmware's.
func (q PortQoS) Meets(s QoSSpec) bool {
	p, mapped := q.DSCP[s.DSCP]
	return q.Trust == "dscp" && mapped && p == s.Priority && slices.Equal(q.PFC, []int{s.Priority}) &&
		(!s.ECN || q.ECN == nil || slices.Contains(q.ECN, s.Priority))
}

// Shares reports whether a priority is in one receive buffer with others that may be dropped.
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

// Inside tells which verbs libraries an image has; false if nobody has looked.
func (g *Guest) Inside(image string) (Libraries, bool) {
	if g == nil || g.Engine == nil {
		return Libraries{}, false
	}
	l, looked := g.Engine.Inside[image]
	return l, looked
}

// String says what the libraries mean for PVRDMA.
func (l Libraries) String() string {
	switch {
	case l.PVRDMA:
		return "libibverbs " + l.Version + " with the provider of PVRDMA"
	case l.MOFED:
		return strings.TrimSpace("MLNX_OFED's libraries "+l.Version) + ", which do not know PVRDMA: no container of it sees the device"
	case l.Version != "":
		return "libibverbs " + l.Version + " without the provider of PVRDMA: no container of it sees the device"
	}
	return "no libibverbs: no container of it can use RDMA"
}

// Interface finds a guest's interface by MAC.
func (g *Guest) Interface(mac string) *Interface {
	return find(g.Interfaces, func(i *Interface) bool { return i.MAC == mac })
}

// Verbs finds a guest's RDMA device by the MAC of its interface.
func (g *Guest) Verbs(mac string) *VerbsDevice {
	return find(g.RDMA, func(d *VerbsDevice) bool { return d.MAC == mac })
}

// Card finds the RDMA device of a NIC that is passed through whole: an mlx5 device behind none of the VM's adapters. Of several
// the one whose port is active; nil if that leaves none or more than one.
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

// CardAt finds the RDMA device of a card that is passed through whole, by a name of HCAName: the one behind the bridge that the
// slot of the VM's device leads to. By any other name it is Card.
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

// Nouveau is what is known of the kernel's own driver of NVIDIA's GPUs in a guest.
type Nouveau struct {
	Loaded    bool `json:"loaded"`
	Kept      bool `json:"blacklisted"` // by our file
	Renewable bool `json:"renewable"`   // the initial RAM disk is made by update-initramfs
}

// Value is that of KindNouveau; a nil Nouveau reads as Absent.
func (n *Nouveau) Value() Value {
	switch {
	case n == nil, n.Loaded && !n.Kept:
		return Absent
	case n.Kept && !n.Loaded:
		return ValueOf(true)
	}
	return Partial(nil)
}
