package backends

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
	BootID  string   `json:"boot_id,omitempty"` // changes with every boot
	Sudo    string   `json:"sudo,omitempty"`    // root, nopasswd, password, none

	PackageManager string            `json:"package_manager,omitempty"` // apt, dnf, yum
	Packages       map[string]string `json:"packages,omitempty"`        // installed version of each package that matters; absent: not installed
	Loaded         []string          `json:"loaded,omitempty"`          // kernel modules loaded, as far as RDMA needs them
	Available      []string          `json:"available,omitempty"`       // kernel modules that modinfo finds
	NetConfig      string            `json:"net_config,omitempty"`      // netplan, networkmanager, ifcfg
	Interfaces     []Interface       `json:"interfaces,omitempty"`
	RDMA           []VerbsDevice     `json:"rdma,omitempty"`
	MemlockKB      int64             `json:"memlock_kb,omitempty"` // -1: unlimited
	Perftest       string            `json:"perftest,omitempty"`   // protocol version of ib_send_bw, "" when missing
	MOFED          string            `json:"mofed,omitempty"`      // ofed_info -s, "" when there is none
	Persist        Persist           `json:"persist"`
	Commands       int               `json:"commands,omitempty"` // remote commands it took
}

// An Interface is a network interface in a guest.
type Interface struct {
	Name       string   `json:"name"`
	MAC        string   `json:"mac"`
	MTU        int      `json:"mtu"`
	Up         bool     `json:"up"`
	Addresses  []string `json:"addresses,omitempty"` // CIDRs, IPv4 and IPv6 without link-local
	DHCP       bool     `json:"dhcp,omitempty"`
	Persistent bool     `json:"persistent,omitempty"` // addresses and MTU come back after a reboot
	Config     string   `json:"config,omitempty"`     // the file or connection that configures it
}

// A VerbsDevice is an RDMA device in a guest (rocep19s0f1).
type VerbsDevice struct {
	Name      string  `json:"name"`
	Driver    string  `json:"driver,omitempty"` // vmw_pvrdma, mlx5_core, rxe
	Interface string  `json:"interface,omitempty"`
	MAC       string  `json:"mac,omitempty"`
	State     string  `json:"state"` // PORT_ACTIVE, PORT_DOWN, ...
	LinkLayer string  `json:"link_layer,omitempty"`
	ActiveMTU int     `json:"active_mtu,omitempty"`
	RateGbps  float64 `json:"rate_gbps,omitempty"`
	Firmware  string  `json:"firmware,omitempty"`
	GIDs      []GID   `json:"gids,omitempty"`
}

// A GID is one entry of a port's GID table.
type GID struct {
	Index  int    `json:"index"`
	GID    string `json:"gid"`
	Type   string `json:"type"` // "IB/RoCE v1", "RoCE v2"
	IPv4   string `json:"ipv4,omitempty"`
	Netdev string `json:"netdev,omitempty"`
}

// Interface finds a guest's interface by MAC.
func (g *Guest) Interface(mac string) *Interface {
	return find(g.Interfaces, func(i *Interface) bool { return i.MAC == mac })
}

// Verbs finds a guest's RDMA device by the MAC of its interface.
func (g *Guest) Verbs(mac string) *VerbsDevice {
	return find(g.RDMA, func(d *VerbsDevice) bool { return d.MAC == mac })
}
