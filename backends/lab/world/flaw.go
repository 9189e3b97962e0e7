package world

// A Flaw is a mistake in a manual setup of a guest. The guest's own shell shows its effect.
type Flaw string

// The flaws of a guest whose Preset is "gpudirect".
const (
	NoGPUDriver  Flaw = "nvidia"        // NVIDIA's driver is not installed
	ClosedDriver Flaw = "closed"        // it does not have the open kernel modules: no DMA-BUF
	NoPeermem    Flaw = "peermem"       // nothing loads nvidia_peermem, which the closed modules need
	OFEDLater    Flaw = "ofed too late" // MLNX_OFED was installed after the driver: nvidia_peermem was built for another ib_core
)

// Nouveau is a kernel with nouveau among its modules, which takes NVIDIA's GPUs at boot (Ubuntu: linux-modules-extra).
const Nouveau Flaw = "nouveau"

// The flaws of a guest whose Preset is "pvrdma".
const (
	NoDriver     Flaw = "driver"       // a kernel without vmw_pvrdma
	NoMemlock    Flaw = "memlock"      // no limit is set in limits.d
	NoPerftest   Flaw = "perftest"     // not installed
	OldPerftest  Flaw = "perftest-old" // v4.4-0.11 is in /usr/local, which has precedence over the distribution's
	NoProvider   Flaw = "provider"     // rdma-core is not installed
	NoDiags      Flaw = "diags"        // diagnostic tools are not installed
	NoModules    Flaw = "modules"      // nothing loads them at boot
	NoReload     Flaw = "reload"       // no unit reloads the driver
	PortDown     Flaw = "port"         // the driver was reloaded while the network was down
	NoAddress    Flaw = "address"      // the interface is configured without an address
	WrongAddress Flaw = "mistyped"     // another network's address
	AddressLost  Flaw = "unsaved"      // the address is set by another unit and is in no network configuration
	LowMTU       Flaw = "mtu"          // 1500
	TwoInSubnet  Flaw = "subnet"       // the management interface has an address of the RDMA network too
	MOFED        Flaw = "mofed"        // MLNX_OFED is installed
	NoSudo       Flaw = "sudo"         // the user may not use sudo
	NoLogin      Flaw = "login"        // logins of the user are refused
	Trace        Flaw = "call trace"   // the kernel log contains a call trace
)
