package world

// A Flaw is a mistake in the manual setup of a guest. Its effect is visible in the guest's shell.
type Flaw string

// Flaws of a guest whose Preset is "gpudirect".
const (
	NoGPUDriver  Flaw = "nvidia"        // NVIDIA's driver is not installed
	ClosedDriver Flaw = "closed"        // the driver has the closed kernel modules: no DMA-BUF
	NoPeermem    Flaw = "peermem"       // nvidia_peermem, which the closed modules require, is not loaded
	OFEDLater    Flaw = "ofed too late" // MLNX_OFED was installed after the driver, so nvidia_peermem was built for another ib_core
)

// Nouveau is the flaw of a kernel that contains the module nouveau, which claims NVIDIA's GPUs at boot (Ubuntu:
// linux-modules-extra).
const Nouveau Flaw = "nouveau"

// Flaws of a guest whose Preset is "pvrdma".
const (
	NoDriver     Flaw = "driver"       // the kernel does not contain vmw_pvrdma
	NoMemlock    Flaw = "memlock"      // limits.d sets no memory lock limit
	NoPerftest   Flaw = "perftest"     // perftest is not installed
	OldPerftest  Flaw = "perftest-old" // v4.4-0.11 is installed in /usr/local, which has precedence over the distribution's
	NoProvider   Flaw = "provider"     // rdma-core is not installed
	NoDiags      Flaw = "diags"        // diagnostic tools are not installed
	NoModules    Flaw = "modules"      // the modules are not loaded at boot
	NoReload     Flaw = "reload"       // no systemd unit reloads the driver
	PortDown     Flaw = "port"         // the driver was reloaded while the network interface was down
	NoAddress    Flaw = "address"      // the interface is configured without an address
	WrongAddress Flaw = "mistyped"     // the address belongs to another network
	AddressLost  Flaw = "unsaved"      // the address is set by another unit and is not in the network configuration
	LowMTU       Flaw = "mtu"          // the MTU is 1500
	TwoInSubnet  Flaw = "subnet"       // the management interface also has an address of the RDMA network
	MOFED        Flaw = "mofed"        // MLNX_OFED is installed
	NoSudo       Flaw = "sudo"         // the user may not use sudo
	NoLogin      Flaw = "login"        // logins of the user are refused
	Trace        Flaw = "call trace"   // the kernel log contains a call trace
)
