package world

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// A Spec says what to build. Zero numbers take the scenario's own.
type Spec struct {
	Hosts, VMs int
	Scenario   string   // "" is healthy
	Systems    []string // of the guests in turn, as rhel-9; nil: as the scenario has it
	Timing     Timing
	Faults     []string // rules, see Fault
	Secrets    Secrets  // empty fields take the lab's fixed ones
}

// Secrets are the passwords of the lab. They guard nothing but a simulation.
type Secrets struct {
	ESXi          string // of root in the ESXi shells
	Guest         string // of the guests' users
	Sudo          string // asked for where a guest's sudo asks
	AuthorizedKey string // public key, in authorized_keys form, that the guests and ESXi shells accept
}

func (s Secrets) withDefaults() Secrets {
	for _, field := range []struct {
		value *string
		plain string
	}{{&s.ESXi, "Lab-esxi-1"}, {&s.Guest, "Lab-guest-1"}, {&s.Sudo, "Lab-guest-1"}} {
		if *field.value == "" {
			*field.value = field.plain
		}
	}
	return s
}

// DefaultUplink is the name of the first uplink of the switches that scenarios bring along.
const DefaultUplink = "Uplink 1"

func build(s *State, spec Spec) error {
	scenario, err := scenarioNamed(spec.Scenario)
	if err != nil {
		return err
	}
	hosts, vms := spec.Hosts, spec.VMs
	if hosts == 0 {
		hosts = max(scenario.Hosts, 4)
	}
	if vms == 0 {
		vms = max(scenario.VMs, 2*hosts)
	}
	if hosts < 1 || hosts > 5000 || vms < 0 || vms > 50000 {
		return fmt.Errorf("the lab builds 1 to 5000 hosts and at most 50000 VMs, not %d and %d", hosts, vms)
	}
	s.Datacenter, s.Cluster = "DC", "Cluster-01"
	now := time.Now()
	for i := range hosts {
		s.Hosts = append(s.Hosts, newHost(i, now))
	}
	for i := range vms {
		s.VMs = append(s.VMs, newVM(s, i, vms, now))
	}
	if scenario.Apply != nil {
		scenario.Apply(s)
	}
	for _, v := range s.VMs {
		if len(spec.Systems) > 0 {
			v.Guest.runs(spec.Systems[v.Index%len(spec.Systems)])
		}
	}
	for _, h := range s.Hosts {
		h.detach()
		h.populate()
	}
	for _, v := range s.VMs {
		v.Guest.NICs = v.bootNICs()
		if v.On {
			if err := s.AssignVFs(v); err != nil {
				return err
			}
			if err := s.AssignDevices(v); err != nil {
				return err
			}
			if len(v.Devices) > 0 {
				s.LogStart(v)
				s.LogStarted(v)
			}
		}
	}
	return nil
}

func newHost(i int, now time.Time) *Host {
	h := &Host{
		Name:        fmt.Sprintf("esx-%02d", i+1),
		Index:       i,
		Version:     "8.0.3",
		Build:       "24022510",
		State:       Up,
		BootTime:    now.Add(-time.Duration(30*24+i) * time.Hour),
		Address:     fmt.Sprintf("10.10.%d.%d", i/200, 11+i%200),
		UUID:        uuid("host", i),
		Lockdown:    "lockdownDisabled",
		MemoryMB:    512 * 1024,
		Sockets:     2,
		Cores:       48,
		PowerPolicy: "dynamic",
		Options: map[string]any{
			"Net.PVRDMAVmknic":                  "",
			"Net.TcpipHeapMax":                  int64(1024),
			"Mem.ShareForceSalting":             int64(2),
			"UserVars.SuppressShellWarning":     int64(0),
			"UserVars.ESXiShellTimeOut":         int64(0),
			"Config.HostAgent.log.level":        "info",
			"Syslog.global.logHost":             "",
			"VMkernel.Boot.disableHwrng":        false,
			"VMkernel.Boot.intrFirstMsixVector": int64(112),
		},
		NTP: []string{"10.10.255.1"},
	}
	equip(h)
	h.VSwitch = []*VSwitch{{Name: "vSwitch0", MTU: 1500, Uplinks: []string{"vmnic0", "vmnic1"}, PortGroups: []string{"VM Network", "Management Network"}}}
	h.VMKs = []*VMK{{Device: "vmk0", MAC: h.PNICs[0].MAC, IP: h.Address, Prefix: 16, MTU: 1500,
		VSwitch: "vSwitch0", PortGroup: "Management Network", NetStack: "defaultTcpipStack", Roles: []string{"management"}}}
	h.Firewall = rulesets()
	h.Services = []*Service{
		{Key: "TSM", Label: "ESXi Shell", Policy: "off"},
		{Key: "TSM-SSH", Label: "SSH", Policy: "off"},
		{Key: "ntpd", Label: "NTP Daemon", Running: true, Policy: "on"},
		{Key: "vpxa", Label: "vpxa", Running: true, Policy: "on"},
		{Key: "lbtd", Label: "Load-Based Teaming Daemon", Running: true, Policy: "on"},
		{Key: "DCUI", Label: "Direct Console UI", Running: true, Policy: "on"},
	}
	return h
}

func newVM(s *State, i, total int, now time.Time) *VM {
	os, user := "ubuntu-22.04", "ubuntu"
	if i%2 == 1 {
		os = "ubuntu-20.04"
	}
	name := fmt.Sprintf("vm-%02d", i+1)
	v := &VM{
		Name:     name,
		Path:     "/" + s.Datacenter + "/vm/" + name,
		Index:    i,
		Host:     s.Hosts[i%len(s.Hosts)].Name,
		On:       true,
		Hardware: 19,
		Firmware: "efi",
		CPUs:     4,
		MemoryMB: 8192,
		UUID:     uuid("vm", i),
		Guest: Guest{
			OS:       os,
			Hostname: name,
			Up:       true,
			Booted:   now.Add(-time.Hour),
			Boots:    1,
			User:     user,
			SudoAsks: i%2 == 1,
			RDMAAddr: rdmaAddr(i, total),
		},
	}
	v.Adapters = []*Adapter{{Key: 4000, Type: Vmxnet3, Label: "Network adapter 1", MAC: MAC(i, 0),
		PortGroup: "VM Network", Connected: true, Start: true, Slot: 192}}
	return v
}

// bootNICs is what Tools report right after boot: the first adapter with its address from DHCP, and an RDMA adapter
// with its address where the guest is already set up.
func (v *VM) bootNICs() []GuestNIC {
	if !v.On || !v.Guest.Up {
		return nil
	}
	var nics []GuestNIC
	for n, a := range v.Adapters {
		nic := GuestNIC{MAC: a.MAC, Name: fmt.Sprintf("ens%d", a.Slot), MTU: 1500}
		if a.Type == PVRDMA {
			nic.Name += "f0"
		}
		switch {
		case n == 0:
			nic.Addrs = []string{fmt.Sprintf("10.20.%d.%d/16", v.Index/200, 11+v.Index%200)}
		case a.Type == PVRDMA && v.Guest.Preset == "pvrdma" && v.RDMA()[0] == a:
			nic.Addrs, nic.MTU = []string{v.Guest.RDMAAddr}, 9000
		}
		nics = append(nics, nic)
	}
	return nics
}

// adapterSlots are the PCI slot numbers that the adapters of a VM get, in order; the guest names them after it.
var adapterSlots = [...]int{192, 224, 256, 161, 193, 225, 257, 162, 194, 226}

// NextSlot is the PCI slot number of the next adapter of a VM.
func (v *VM) NextSlot() int {
	for _, slot := range adapterSlots {
		if find(v.Adapters, func(a *Adapter) bool { return a.Slot == slot }) == nil &&
			find(v.Devices, func(d *Passthrough) bool { return d.Slot == slot }) == nil {
			return slot
		}
	}
	return 1184 + 32*(len(v.Adapters)+len(v.Devices))
}

// MAC is the generated address of the nth adapter of the VM with that index.
func MAC(vm, n int) string {
	return fmt.Sprintf("00:50:56:%02x:%02x:%02x", 0x80+n%0x40, vm>>8&0xff, vm&0xff)
}

func rdmaAddr(i, total int) string {
	at, prefix := 11+i, 24
	if total > 200 {
		prefix = 16
	}
	return fmt.Sprintf("192.168.%d.%d/%d", 50+at/250, at%250, prefix)
}

func uuid(kind string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", kind, i))
	return fmt.Sprintf("%x-%x-4%x-a%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])[:36]
}

// rulesets are the firewall rulesets of a fresh host.
func rulesets() []*Ruleset {
	var list []*Ruleset
	for _, r := range []struct {
		on   bool
		keys []string
	}{
		{true, []string{"CIMHttpServer", "CIMHttpsServer", "CIMSLP", "DHCPv6", "DVSSync", "HBR", "NFC", "WOL", "dhcp", "dns",
			"esxupdate", "faultTolerance", "iofiltervp", "ntpClient", "rabbitmqproxy", "rdt", "snmp", "sshServer",
			"vMotion", "vSphereClient", "vpxHeartbeats", "webAccess"}},
		{false, []string{"DVFilter", "activeDirectoryAll", "cmmds", "ftpClient", "gdbserver", "httpClient", "iSCSI", "ipfam",
			"nfs41Client", "nfsClient", "pvrdma", "remoteSerialPort", "sshClient", "syslog", "updateManager", "vSPC",
			"vsanEncryption", "vsanhealth-multicasttest", "vsanvp", "vvold"}},
	} {
		for _, key := range r.keys {
			list = append(list, &Ruleset{Key: key, Enabled: r.on, AllIP: true})
		}
	}
	return list
}
