package scenario

import (
	"fmt"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func brokenScenarios() [][]brokenScenario {
	return [][]brokenScenario{brokenHardware(), brokenHosts(), brokenSwitches(), brokenVMs(), brokenGuests()}
}

// broken returns scenarios with one fault in a site that is otherwise set up. In each, a specific check must be reported first.
// A fault of a single machine is on the last host or VM.
func broken() []Scenario {
	var list []Scenario
	for _, rows := range brokenScenarios() {
		for _, r := range rows {
			list = append(list, Scenario{Name: "broken-" + r.name, Text: r.text, Hosts: r.hosts, VMs: r.vms, Apply: func(s *world.State) {
				done(s)
				r.inject(s)
			}})
		}
	}
	return list
}

// Broken returns the names of the scenarios with a fault.
func Broken() []string {
	var names []string
	for _, s := range broken() {
		names = append(names, s.Name)
	}
	return names
}

// Break applies the fault of a Broken scenario to another site. It returns an error if the scenario does not exist, or if the
// site does not have the object that the fault changes.
func Break(s *world.State, name string) (err error) {
	for _, rows := range brokenScenarios() {
		for _, r := range rows {
			if "broken-"+r.name != name {
				continue
			}
			defer func() { // scenarios are written for the lab's hosts and may use objects that another site does not have
				if recover() != nil {
					err = fmt.Errorf("scenario %s does not fit this site: what it breaks is not there", name)
				}
			}()
			r.inject(s)
			return nil
		}
	}
	return fmt.Errorf("scenario %q breaks nothing at another site", name)
}

// A brokenScenario is the scenario "done" with one fault.
type brokenScenario struct {
	name, text string
	hosts, vms int // see Scenario
	inject     func(*world.State)
}

// lastHost returns a function that applies f to the last host.
func lastHost(f func(*world.Host)) func(*world.State) {
	return func(s *world.State) { f(s.Hosts[len(s.Hosts)-1]) }
}

// everyHost returns a function that applies f to every host.
func everyHost(f func(*world.Host)) func(*world.State) {
	return func(s *world.State) {
		for _, h := range s.Hosts {
			f(h)
		}
	}
}

// brokenHardware returns faults of servers and cards, and of their drivers and firmware.
func brokenHardware() []brokenScenario {
	return []brokenScenario{
		{name: "cpu-mixed", text: "a host has fewer cores", inject: lastHost(func(h *world.Host) { h.Cores = 32 })},
		{name: "nic-mixed", text: "a host has another model of RDMA NIC", inject: lastHost(func(h *world.Host) {
			for _, p := range h.PNICs[2:4] {
				d := h.PCIDevice(p.PCI)
				d.Device, d.SubDevice, d.DeviceName = 0x1019, 0x0008, "MT28800 Family [ConnectX-5 Ex]"
				p.Model = d.DeviceName
			}
		})},
		{name: "slot-moved", text: "a host has its RDMA NIC in another slot", inject: lastHost(moveCard)},
		{name: "hyperthreading", text: "hyper-threading is off on a host", inject: lastHost(func(h *world.Host) { h.NoThreads = true })},
		{name: "power-control", text: "the BIOS of a host does not let ESXi manage power",
			inject: lastHost(func(h *world.Host) { h.OwnPower = true })},
		{name: "firmware-mixed", text: "a host has another version of the NIC firmware",
			inject: lastHost(func(h *world.Host) { flash(h, "16.32.1010") })},
		{name: "firmware-old", text: "NIC firmware that the driver does not support",
			inject: everyHost(func(h *world.Host) { flash(h, "16.28.2006") })},
		{name: "driver-mixed", text: "a host has another version of the NIC driver", inject: lastHost(func(h *world.Host) {
			for _, p := range h.PNICs[2:4] {
				p.DriverVersion = "4.23.0.66-1OEM.800.1.0.20613240"
			}
		})},
		{name: "driver-unknown", text: "the RDMA NICs run a driver that is not listed", inject: everyHost(func(h *world.Host) {
			for _, p := range h.PNICs[2:4] {
				p.Driver, p.DriverVersion = "ixgben", "1.15.1.0-1OEM.800.1.0.20613240"
			}
		})},
		{name: "no-rdma", text: "a host has not loaded the RDMA module", inject: lastHost(func(h *world.Host) {
			h.PNICs[2].RDMA, h.PNICs[3].RDMA = nil, nil
			h.Module("nmlx5_rdma").Loaded = false
		})},
		{name: "iwarp", text: "Intel NICs that support iWARP only", inject: everyHost(intelIWARP)},
		{name: "rocev1-only", text: "an RDMA NIC that supports RoCE v1 only",
			inject: lastHost(func(h *world.Host) { h.PNICs[2].RDMA.RoCEv2 = false })},
		{name: "parameters-mixed", text: "a host has other parameters of the NIC driver", inject: lastHost(func(h *world.Host) {
			for _, name := range []string{"pfctx", "pfcrx"} {
				p := h.Module("nmlx5_core").Parameter(name)
				p.Value, p.Active = "0x08", "0x08"
			}
		})},
	}
}

func flash(h *world.Host, firmware string) {
	h.PNICs[2].Firmware, h.PNICs[3].Firmware = firmware, firmware
}

// moveCard moves the RDMA card to the other root port.
func moveCard(h *world.Host) {
	for n, p := range h.PNICs[2:4] {
		d := h.PCIDevice(p.PCI)
		d.Address, d.Parent, d.NUMA = []string{"0000:b1:00.0", "0000:b1:00.1"}[n], "0000:ae:00.0", 1
		p.PCI, p.NUMA = d.Address, 1
	}
}

// brokenHosts returns faults of vCenter, ESXi and the management network.
func brokenHosts() []brokenScenario {
	return []brokenScenario{
		{name: "privileges", text: "the vCenter account is read-only", inject: func(s *world.State) { s.Reader = true }},
		{name: "clock", text: "vCenter's clock is two minutes ahead", inject: func(s *world.State) { s.Skew = 2 * time.Minute }},
		{name: "clock-drifting", text: "vCenter's clock is half a minute behind", inject: func(s *world.State) { s.Skew = -30 * time.Second }},
		{name: "esxi-mixed", text: "a host runs another build", inject: lastHost(func(h *world.Host) { h.Build = "24280767" })},
		{name: "power-mixed", text: "a host has another power policy", inject: lastHost(func(h *world.Host) { h.PowerPolicy = "static" })},
		{name: "host-disconnected", text: "a host without VMs does not respond", hosts: 3, vms: 2,
			inject: lastHost(func(h *world.Host) { h.State = world.Down })},
		{name: "maintenance", text: "a host without VMs is in maintenance mode", hosts: 3, vms: 2,
			inject: lastHost(func(h *world.Host) { h.Maintenance = true })},
		{name: "reboot-required", text: "a host waits for a reboot", inject: lastHost(func(h *world.Host) { h.RebootRequired = true })},
		{name: "ntp", text: "a host has no NTP server", inject: lastHost(func(h *world.Host) { h.NTP = nil })},
		{name: "ntp-stopped", text: "a host does not run ntpd", inject: lastHost(func(h *world.Host) { h.Service("ntpd").Running = false })},
		{name: "link-down", text: "an RDMA NIC has no link", inject: lastHost(func(h *world.Host) { h.PNICs[2].LinkUp = false })},
		{name: "link-slow", text: "an RDMA NIC negotiated 25G", inject: lastHost(func(h *world.Host) { h.PNICs[2].SpeedMbps = 25000 })},
		{name: "nic-errors", text: "a bad cable: frames arrive with errors",
			inject: lastHost(func(h *world.Host) { h.PNICs[2].BadFrames = 5000 })},
		{name: "nic-deaf", text: "the physical switch sends no LLDP to a host", inject: lastHost(func(h *world.Host) { h.PNICs[2].Deaf = true })},
		{name: "nic-shared", text: "an RDMA NIC also carries vMotion", inject: lastHost(func(h *world.Host) {
			h.VMKs = append(h.VMKs, &world.VMK{Device: "vmk1", MAC: "00:50:56:60:00:01", IP: "10.11.0.11", Prefix: 24, MTU: 9000,
				DVS: "RDMA-DVS", PortGroup: "RDMA-PG", NetStack: "defaultTcpipStack", Roles: []string{"vmotion"}})
		})},
		{name: "vmknic-empty", text: "Net.PVRDMAVmknic of a host is empty",
			inject: lastHost(func(h *world.Host) { h.Options["Net.PVRDMAVmknic"] = "" })},
		{name: "vmknic-quoted", text: "Net.PVRDMAVmknic of a host has quotes in it",
			inject: lastHost(func(h *world.Host) { h.Options["Net.PVRDMAVmknic"] = `"vmk0"` })},
		{name: "vmknic-missing", text: "a host lacks the vmknic that PVRDMA uses",
			inject: lastHost(func(h *world.Host) { h.VMKs[0].Device = "vmk3" })},
		{name: "vmknic-dhcp", text: "the vmknic of a host has its address by DHCP",
			inject: lastHost(func(h *world.Host) { h.VMKs[0].DHCP = true })},
		{name: "vmknic-subnet", text: "the vmknic of a host is in another subnet",
			inject: lastHost(func(h *world.Host) { h.VMKs[0].IP = "10.77.0.11" })},
		{name: "vmknic-duplicate", text: "two vmknics have the same address",
			inject: func(s *world.State) { s.Hosts[len(s.Hosts)-1].VMKs[0].IP = s.Hosts[0].VMKs[0].IP }},
		{name: "vmknic-cable", text: "the management NICs of a host have no link",
			inject: lastHost(func(h *world.Host) { h.PNICs[0].LinkUp, h.PNICs[1].LinkUp = false, false })},
		{name: "vmknic-mtu", text: "the vmknics have MTU 9000 on a switch of 1500",
			inject: everyHost(func(h *world.Host) { h.VMKs[0].MTU = 9000 })},
		{name: "firewall", text: "the ruleset pvrdma is closed on a host",
			inject: lastHost(func(h *world.Host) { h.Ruleset("pvrdma").Enabled = false })},
	}
}
