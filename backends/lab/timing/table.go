package timing

import "time"

// A duration is how long a command takes. If steps is set, the command works in steps and uses the times of other rows for them;
// its own row has no time.
type duration struct {
	time   time.Duration
	steps  bool
	source string
}

const (
	debian = "estimate for Debian 12 with 2 CPUs"
	ms     = time.Millisecond
)

// durations contains the times by command: the base name of the program and its first words. Rows whose name is not a command
// are steps of one. Measured values were measured with time(1) on Debian 12; estimates are of the correct order of magnitude.
var durations = map[string]duration{
	// Initial RAM disks: mkinitramfs(8) copies modules for most of the time, then compresses them.
	"update-initramfs": {steps: true},
	"mkinitramfs copy": {1800 * ms, false, debian + ": update-initramfs -u, 3 s in all with MODULES=most"},
	"mkinitramfs pack": {1200 * ms, false, debian},
	"dracut":           {steps: true},
	"dracut modules":   {6 * time.Second, false, "dracut(8), dracut -f of a general image on RHEL 9: about 8 s in all"},
	"dracut pack":      {2 * time.Second, false, "dracut(8), as above"},
	"dracut copy":      {100 * ms, false, "dracut(8): cp of 40 to 80 MB to /boot"},
	"depmod":           {700 * ms, false, debian + ": depmod -a"},
	"udevadm settle":   {100 * ms, false, debian},
	"modprobe":         {200 * ms, false, debian + ": modprobe of a module with dependencies"},
	"rmmod":            {60 * ms, false, debian},
	"systemd-run":      {50 * ms, false, debian},
	"nvidia-smi":       {500 * ms, false, "NVIDIA System Management Interface: it opens every GPU; about 0.5 s without persistence mode"},
	"nvidia-installer": {40 * time.Second, false, "NVIDIA driver README, chapter 4: it builds the kernel modules"},
	"nvidia-uninstall": {5 * time.Second, false, "as nvidia-installer, without a build"},
	"mlnxofedinstall":  {steps: true},
	"mlnxofed part": {2 * time.Second, false,
		"MLNX_OFED user manual, Installing MLNX_OFED: about 5 to 20 min on the whole, one part a package"},
	"openibd": {8 * time.Second, false, "MLNX_OFED user manual: /etc/init.d/openibd restart unloads and loads the whole stack"},

	// Packages: apt-get uses the time of each archive, and dpkg that of each package.
	"apt-get install": {steps: true},
	"apt-get remove":  {steps: true},
	"apt-get purge":   {steps: true},
	"apt-get update":  {3 * time.Second, false, "measured: 4.6 s on 2 busy CPUs"},
	"apt-cache":       {1100 * ms, false, "measured with time(1) on Debian 12: apt-cache policy bash, 1.1 to 1.8 s on 2 busy CPUs"},
	"apt lists":       {2 * time.Second, false, "measured: apt-get install -s tree, 3.9 to 5.4 s on 2 busy CPUs; half of it for idle ones"},
	"apt fetch":       {400 * ms, false, debian + ": one archive of 1 MB"},
	"dpkg":            {steps: true},
	"dpkg unpack": {1500 * ms, false,
		"measured: dpkg --unpack of tree, 7.6 s on 2 busy CPUs, most of it for reading the database once; the rest is for each package"},
	"dpkg record":    {50 * ms, false, debian + ": what dpkg writes into its database after the files of a package are in place"},
	"dpkg configure": {1200 * ms, false, debian + ": dpkg --configure with a postinst that enables units"},
	"dpkg remove":    {900 * ms, false, debian},
	"dpkg-query":     {20 * ms, false, "measured: dpkg-query -W, 17 ms"},
	"dnf install":    {steps: true},
	"dnf remove":     {steps: true},
	"dnf lists":      {1500 * ms, false, "dnf(8): metadata are read before anything else; 1 to 2 s on RHEL 9"},
	"dnf fetch":      {400 * ms, false, "as apt fetch"},
	"rpm install":    {1500 * ms, false, "as dpkg unpack"},
	"rpm remove":     {900 * ms, false, "as dpkg remove"},
	"dnf":            {1 * time.Second, false, "dnf(8): start of Python and reading the metadata"},
	"rpm":            {40 * ms, false, "rpm -q opens the database"},

	// systemd and networks.
	"systemctl daemon-reload": {300 * ms, false, debian},
	"systemctl enable":        {350 * ms, false, debian + ": it reloads the manager at its end"},
	"systemctl disable":       {350 * ms, false, debian},
	"systemctl start":         {150 * ms, false, debian},
	"systemctl stop":          {150 * ms, false, debian},
	"systemctl restart":       {300 * ms, false, debian},
	"systemctl":               {15 * ms, false, debian},
	"networkctl reload":       {500 * ms, false, debian},
	"networkctl reconfigure":  {500 * ms, false, debian},
	"networkctl":              {100 * ms, false, debian},
	"netplan generate":        {500 * ms, false, "netplan(5): start of Python, generator and daemon-reload"},
	"netplan apply":           {steps: true},
	"netplan parse":           {500 * ms, false, "netplan-apply(8), about 2 s in all on Ubuntu 22.04: it generates,"},
	"netplan restart":         {1500 * ms, false, "netplan-apply(8): then it restarts or reloads systemd-networkd and udev"},
	"nmcli connection":        {250 * ms, false, "nmcli(1): one call of NetworkManager over D-Bus, and the write of a keyfile"},
	"nmcli con":               {250 * ms, false, "as above"},
	"nmcli c":                 {250 * ms, false, "as above"},
	"nmcli":                   {40 * ms, false, "as above"},
	"ethtool":                 {5 * ms, false, debian},

	// ESXi.
	"mlxconfig":    {time.Second, false, "NVIDIA Firmware Tools (MFT) documentation, mlxconfig: it opens the card and waits for its firmware"},
	"mlxfwmanager": {30 * time.Second, false, "MFT documentation, mlxfwmanager: a burn takes half a minute to minutes"},
	"flint":        {2 * time.Second, false, "MFT documentation, flint query"},
	"flint burn":   {steps: true},
	"flint part":   {10 * time.Second, false, "public walks through burns of ConnectX-4 to -6: half a minute to two minutes on the whole"},
	"mst":          {500 * ms, false, "MFT documentation, mst start"},
}
