package world

// A Defect is a mistake in the manual setup of a guest. Its effect is visible in the guest's shell.
type Defect string

// Defects of a guest whose Preset is "gpudirect".
const (
	NoGPUDriver  Defect = "nvidia"        // NVIDIA's driver is not installed
	ClosedDriver Defect = "closed"        // the driver has the closed kernel modules: no DMA-BUF
	NoPeermem    Defect = "peermem"       // nvidia_peermem, which the closed modules require, is not loaded
	OFEDLater    Defect = "ofed too late" // MLNX_OFED was installed after the driver, so nvidia_peermem was built for another ib_core
)

// NoLicenseServer is the defect of a guest whose network does not reach the license server of its vGPU.
const NoLicenseServer Defect = "license server"

// NoLicense is the defect of a guest without the client configuration token of its vGPU.
const NoLicense Defect = "license"

// Nouveau is the defect of a kernel that contains the module nouveau, which claims NVIDIA's GPUs at boot (Ubuntu:
// linux-modules-extra).
const Nouveau Defect = "nouveau"

// Defects of a guest whose Preset is "pvrdma".
const (
	NoDriver     Defect = "driver"       // the kernel does not contain vmw_pvrdma
	NoMemlock    Defect = "memlock"      // limits.d sets no memory lock limit
	NoPerftest   Defect = "perftest"     // perftest is not installed
	OldPerftest  Defect = "perftest-old" // v4.4-0.11 is installed in /usr/local, which has precedence over the distribution's
	NoProvider   Defect = "provider"     // rdma-core is not installed
	NoDiags      Defect = "diags"        // diagnostic tools are not installed
	NoModules    Defect = "modules"      // the modules are not loaded at boot
	NoReload     Defect = "reload"       // no systemd unit reloads the driver
	PortDown     Defect = "port"         // the driver was reloaded while the network interface was down
	NoAddress    Defect = "address"      // the interface is configured without an address
	WrongAddress Defect = "mistyped"     // the address belongs to another network
	AddressLost  Defect = "unsaved"      // the address is set by another unit and is not in the network configuration
	LowMTU       Defect = "mtu"          // the MTU is 1500
	TwoInSubnet  Defect = "subnet"       // the management interface also has an address of the RDMA network
	MOFED        Defect = "mofed"        // MLNX_OFED is installed
	NoSudo       Defect = "sudo"         // the user may not use sudo
	NoLogin      Defect = "login"        // logins of the user are refused
	Trace        Defect = "call trace"   // the kernel log contains a call trace
)
