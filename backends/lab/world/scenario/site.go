package scenario

import (
	"fmt"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A Spec describes the data centre to build. Zero numbers select the scenario's defaults.
type Spec struct {
	Hosts, VMs int
	Scenario   string   // "" selects healthy
	Systems    []string // operating systems, such as rhel-9, assigned to the guests in turn; nil: the scenario's
	Timing     world.Timing
	Faults     []string      // fault rules, see fault.Rule
	Secrets    world.Secrets // empty fields are replaced by the lab's fixed values
}

// DefaultUplink is the name of the first uplink of the scenarios' switches.
const DefaultUplink = "Uplink 1"

// New creates the data centre that spec describes.
func New(spec Spec) (*world.World, error) {
	return world.New(world.Options{Timing: spec.Timing, Faults: spec.Faults, Secrets: spec.Secrets},
		func(s *world.State) error { return Build(s, spec) })
}

// Build creates the objects of the data centre that spec describes in s; Timing, Faults and Secrets are ignored.
func Build(s *world.State, spec Spec) error {
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
			runs(&v.Guest, spec.Systems[v.Index%len(spec.Systems)])
		}
	}
	return nil
}

func newHost(i int, now time.Time) *world.Host {
	h := PlainHost(i, now)
	equip(h)
	h.VSwitch = []*world.VSwitch{{Name: "vSwitch0", MTU: 1500, Uplinks: []string{"vmnic0", "vmnic1"},
		PortGroups: []string{"VM Network", "Management Network"}}}
	h.VMKs = []*world.VMK{{Device: "vmk0", MAC: h.PNICs[0].MAC, IP: h.Address, Prefix: 16, MTU: 1500,
		VSwitch: "vSwitch0", PortGroup: "Management Network", NetStack: "defaultTcpipStack", Roles: []string{"management"}}}
	return h
}

// PlainHost returns a freshly installed ESXi host, without adapters and other relevant hardware.
func PlainHost(i int, now time.Time) *world.Host {
	h := &world.Host{
		Name:        fmt.Sprintf("esx-%02d", i+1),
		Index:       i,
		Version:     "8.0.3",
		Build:       "24022510",
		State:       world.Up,
		BootTime:    now.Add(-time.Duration(30*24+i) * time.Hour),
		Address:     fmt.Sprintf("10.10.%d.%d", i/200, 11+i%200),
		UUID:        world.UUID("host", i),
		Lockdown:    "lockdownDisabled",
		MemoryMB:    512 * 1024,
		Sockets:     2,
		Cores:       48,
		PowerPolicy: "dynamic",
		BIOSSRIOV:   true, Acceptance: "PartnerSupported",
		Options: map[string]any{
			"Net.PVRDMAVmknic":                  "",
			"Net.TcpipHeapMax":                  int64(1024),
			"Mem.ShareForceSalting":             int64(2),
			"UserVars.SuppressShellWarning":     int64(0),
			"UserVars.ESXiShellTimeOut":         int64(0),
			"Security.AccountLockFailures":      int64(5),
			"Security.AccountUnlockTime":        int64(900),
			"Config.HostAgent.log.level":        "info",
			"Syslog.global.logHost":             "",
			"VMkernel.Boot.disableHwrng":        false,
			"VMkernel.Boot.intrFirstMsixVector": int64(112),
		},
		NTP: []string{"10.10.255.1"},
	}
	h.Firewall = rulesets()
	h.Services = []*world.Service{
		{Key: "TSM", Label: "ESXi Shell", Policy: "off"},
		{Key: "TSM-SSH", Label: "SSH", Policy: "off"},
		{Key: "ntpd", Label: "NTP Daemon", Running: true, Policy: "on"},
		{Key: "vpxa", Label: "vpxa", Running: true, Policy: "on"},
		{Key: "lbtd", Label: "Load-Based Teaming Daemon", Running: true, Policy: "on"},
		{Key: "DCUI", Label: "Direct Console UI", Running: true, Policy: "on"},
	}
	return h
}

func newVM(s *world.State, i, total int, now time.Time) *world.VM {
	os, user := "ubuntu-22.04", "ubuntu"
	if i%2 == 1 {
		os = "ubuntu-20.04"
	}
	name := fmt.Sprintf("vm-%02d", i+1)
	v := &world.VM{
		Name:     name,
		Path:     "/" + s.Datacenter + "/vm/" + name,
		Index:    i,
		Host:     s.Hosts[i%len(s.Hosts)].Name,
		On:       true,
		Hardware: 19,
		Firmware: "efi",
		CPUs:     4,
		MemoryMB: 8192,
		UUID:     world.UUID("vm", i),
		Guest: world.Guest{
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
	v.Adapters = []*world.Adapter{{Key: 4000, Type: world.Vmxnet3, Label: "Network adapter 1", MAC: world.MAC(i, 0),
		PortGroup: "VM Network", Connected: true, Start: true, Slot: 192}}
	return v
}

func rdmaAddr(i, total int) string {
	at, prefix := 11+i, 24
	if total > 200 {
		prefix = 16
	}
	return fmt.Sprintf("192.168.%d.%d/%d", 50+at/250, at%250, prefix)
}

// rulesets returns the firewall rulesets of a freshly installed host.
func rulesets() []*world.Ruleset {
	var list []*world.Ruleset
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
			list = append(list, &world.Ruleset{Key: key, Enabled: r.on, AllIP: true})
		}
	}
	return list
}
