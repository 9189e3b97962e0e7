package backends

import (
	"context"
	"errors"
	"time"
)

// A HostShell runs programs on one ESXi host, one at a time.
type HostShell interface {
	Host() string
	// Run returns what a program printed to both streams, and its exit status. A limit of 0 means the shell's default.
	Run(ctx context.Context, limit time.Duration, argv ...string) (text string, status int, err error)
}

// FirmwareTools are the firmware tools of a family of NICs in the shell of one host. Cards are identified by the PCI address of
// function 0.
type FirmwareTools interface {
	Cards(ctx context.Context) (map[string]Firmware, error)
	Config(ctx context.Context, card string) (Firmware, error) // the keys only
	SetConfig(ctx context.Context, card string, want map[string]string, progress Progress) error
	Image(ctx context.Context, card string) (FirmwareImage, error) // on the card's flash, and what runs
	Burn(ctx context.Context, card string, want FirmwareImage, progress Progress) error
}

// ErrNoFirmwareTools is in the error chain for hosts whose running image lacks the firmware tools.
var ErrNoFirmwareTools = errors.New("no such program")

// LosslessParams names the module parameters that make a class lossless.
type LosslessParams struct {
	PFCTx, PFCRx string // of the driver: bit masks of priorities
	Trust        string // of the driver: how packets are classified
	ByPCP        int    // value of Trust for the VLAN tag's priority
	ByDSCP       int    // value of Trust for the DSCP
	ECN          string // of the driver: 1 on, 0 off
	DSCP         string // of the RDMA module: the DSCP of the host's own RDMA traffic
}

// VFRules describe how VFs are requested from a driver.
type VFRules struct {
	Param string // of the driver: one number for each port, in PCI order
	Most  int    // maximum per port

	// Refused says why this program does not set up VFs on its ports, as a predicate of the pNIC; "" if it does.
	Refused string
	Remedy  string

	ENS string // the maker's statement on VFs of a port on a switch in enhanced data path mode, as a clause; "" if there is none
}

// FirmwareRules describe the firmware tools of a family in the ESXi shell, and the keys that they set.
type FirmwareRules struct {
	Tools   []string // VIBs of the tools, all of one release
	Module  string   // the VIB that is a kernel module: secure boot verifies it
	Command string   // sets keys of a card; %s: its address and KEY=VALUE words
	Query   string   // prints one key of a card; %s: its address and the key
	Undo    string   // Command in the form used in texts about undoing a change

	// Components are the vSphere Lifecycle Manager components that contain the VIBs of the tools and the driver, by VIB.
	Components map[string]string

	Keys     []string // every key that is read and may be written; no card has all of them
	SRIOV    string   // key that enables SR-IOV
	VFs      string   // key with the number of VFs; never lowered
	LinkType string   // prefix of the key for a port's protocol; the port number follows
	Ethernet string   // value of LinkType
	ATS      string   // key that lets the card request address translations from the IOMMU (ATS)
	Advanced string   // key that shows or hides tuned PCI values; if off, they return to their defaults

	NoATS  string // what to do if the card has no ATS key
	OwnIDs string // prefix of the ids of boards that the maker sells itself; others are an OEM's

	Mode      string   // key of cards with a CPU of their own: whether it or the host owns the ports; read, never changed
	CPUCards  []string // PCI device ids of such cards
	NICMode   string   // value of Mode if the host owns the ports
	CPU       string   // key for how the CPU is connected to the card; read, never changed
	NoNICMode string   // what to do in any other mode; %s: the card's address

	Loaded       string                   // prints the firmware on a card's flash, and the running one if it differs; %s: its address
	Burn         string                   // writes firmware from a file to a card; %s: its address and the file
	ImageVersion func(file string) string // version of the firmware according to the file name, "" if the name has none
}

// An Advisory is a published firmware vulnerability that a user of a VF can exploit.
type Advisory struct {
	Bulletin string // its title and number
	Date     string // of the bulletin, 2026-06-30
	CVE      string
	Score    float64                // CVSS 3.1 base score
	Impact   string                 // in lower case: "code execution on the card"
	Fixed    map[string]map[int]int // by PCI device id and branch of the firmware: the first build without the fault
}

// RoCERules describe how RoCE v2 is enabled in a driver if it is not enabled by default.
type RoCERules struct {
	Least  string // oldest version of the driver with which RDMA works, "" if none is documented
	Enable string // parameter of the driver that enables RDMA, one number per port; "" if there is none
	Mode   string // module with a parameter that selects iWARP or RoCE v2, "" if the mode cannot be selected
	Source string
	NoENS  string // source that excludes RDMA on a switch in enhanced data path mode, "" if the maker does not

	// NoDevice says what to do if a port has no RDMA device and no parameter enables RDMA, "" if the module only has to be loaded.
	NoDevice string
}
