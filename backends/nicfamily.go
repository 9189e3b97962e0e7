package backends

import (
	"context"
	"errors"
	"time"
)

// A HostShell runs programs on one ESXi host, one at a time.
type HostShell interface {
	Host() string
	// Run returns what a program printed on both streams, and its exit status. A limit of 0 is the shell's own.
	Run(ctx context.Context, limit time.Duration, argv ...string) (text string, status int, err error)
}

// FirmwareTools are the firmware tools of a family of NICs in the shell of one host. Cards go by the PCI address of function 0.
type FirmwareTools interface {
	Cards(ctx context.Context) (map[string]Firmware, error)
	Config(ctx context.Context, card string) (Firmware, error) // the keys only
	SetConfig(ctx context.Context, card string, want map[string]string, progress Progress) error
	Image(ctx context.Context, card string) (FirmwareImage, error) // on the card's flash
	Burn(ctx context.Context, card string, want FirmwareImage, progress Progress) error
}

// ErrNoFirmwareTools is in the chain of errors of hosts whose running image lacks the firmware tools.
var ErrNoFirmwareTools = errors.New("no such program")

// LosslessParams names the module parameters by which a driver keeps a class from losing packets.
type LosslessParams struct {
	PFCTx, PFCRx string // of the driver: bit masks of priorities
	Trust        string // of the driver: what sorts packets into priorities
	ByPCP        int    // value of Trust for the VLAN tag's priority
	ByDSCP       int    // value of Trust for the DSCP
	ECN          string // of the driver: 1 on, 0 off
	DSCP         string // of the RDMA module: the DSCP of the host's own RDMA
}

// VFRules are how a driver is asked for VFs.
type VFRules struct {
	Param string // of the driver: one number for each port, in PCI order
	Most  int    // that its firmware gives a port

	// Refused says why this program sets up no VFs of its ports, as a predicate of the pNIC; "" if it does.
	Refused string
	Remedy  string

	ENS string // what the maker says of VFs of a port on a switch in enhanced data path mode, as a clause; "" if it does not say
}

// FirmwareRules are what a family's firmware tools set, over the ESXi shell.
type FirmwareRules struct {
	Tools   []string // VIBs of the tools, all of one release
	Module  string   // the one among them that is a kernel module: secure boot looks at it
	Command string   // sets keys of a card; %s: its address and KEY=VALUE words
	Query   string   // prints one key of a card; %s: its address and the key
	Undo    string   // Command as texts have it that tell how to undo a change

	// Components are the components of vSphere Lifecycle Manager that hold VIBs of the tools and the driver, by VIB.
	Components map[string]string

	Keys     []string // every key that is read and may be written; a card has some of them
	SRIOV    string   // key that switches SR-IOV on
	VFs      string   // key with the number of VFs; never lowered
	LinkType string   // beginning of a port's key for its protocol; the port's number follows
	Ethernet string   // value of LinkType
	ATS      string   // key that lets the card ask the IOMMU for addresses itself
	Advanced string   // key that shows or hides tuned PCI values; off, they return to their defaults

	NoATS  string // what to do where the card has no ATS key
	OwnIDs string // beginning of the ids of boards that the maker sells itself; others are an OEM's

	Mode      string // key of cards with a CPU of their own that says whether it, or the host, owns the ports; read, never changed
	NICMode   string // value of Mode with which the host owns them
	CPU       string // key that tells how the CPU is tied to the card; read, never changed
	NoNICMode string // what to do in any other mode; %s: the card's address

	Burn         string                   // writes the firmware of a file to a card; %s: its address and the file
	ImageVersion func(file string) string // version of the firmware in a file as its name tells it, "" if it does not
}

// An Advisory is a fault of cards' firmware as the maker has published it, that a user of a VF can reach.
type Advisory struct {
	Bulletin string // its title and number
	Date     string // of the bulletin, 2026-06-30
	CVE      string
	Score    float64                // CVSS 3.1 base score
	Impact   string                 // in lower case: "code execution on the card"
	Fixed    map[string]map[int]int // by PCI device id and branch of the firmware: the first build without the fault
}

// RoCERules are how a driver comes to RoCE v2, where that is not simply there.
type RoCERules struct {
	Least  string // oldest version of the driver with which RDMA works, "" if none is documented
	Enable string // parameter of the driver that switches RDMA on, one number for each port; "" if it is always on
	Mode   string // module with a parameter for iWARP or RoCE v2, "" if there is no choice
	Source string
	NoENS  string // source that rules RDMA out on a switch in enhanced data path mode, "" if the maker does not say
}
