package recipe_test

import (
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

const cardCX5, portCX5 = "0000:3b:00.0", "0000:3b:00.0"

var coreKeys = []string{"DRSS", "RSS", "dcbx", "ecn", "max_vfs", "pfcrx", "pfctx", "trust_state"}

// newSRIOV is the healthy data centre with the esxcli output of bare hosts: no tools, tools on the datastore, SR-IOV off in the
// firmware.
func newSRIOV(hosts int) *backends.Inventory {
	inv := newInventory(hosts)
	for i := range inv.Hosts {
		h := &inv.Hosts[i]
		h.PowerPolicy, h.PowerPolicies, h.Vendor = "dynamic", []string{"static", "dynamic", "low", "custom"}, "Dell Inc."
		h.NICs = append(h.NICs, backends.NIC{Device: "vmnic1", PCI: "0000:1a:00.1", Driver: connectX.Driver(), MaxSpeedMbps: 25000})
		for n := range h.NICs {
			h.NICs[n].SRIOV = &backends.SRIOV{Capable: true}
		}
		h.System = &backends.HostSystem{
			Modules: map[string]backends.Fact[backends.Module]{
				connectX.Driver(): backends.FactOf(backends.Module{Known: coreKeys, Params: map[string]string{}}),
				connectX.RDMA():   backends.FactOf(backends.Module{Known: []string{"dscp_force", "dscp_to_pcp"}, Params: map[string]string{}}),
			},
			VIBs: backends.FactOf(map[string]backends.VIB{connectX.VIBs()[0]: {Version: "4.23.6.2-1vmw.803"},
				connectX.VIBs()[1]: {Version: "4.23.6.2-1vmw.803"}}),
			NextVIBs:   backends.Fact[map[string]backends.VIB]{State: backends.FactAbsent},
			Acceptance: backends.FactOf("PartnerSupported"),
			Offers: []backends.Component{
				{Path: "/vmfs/volumes/shared-01/mft.vib", Name: "mft", Version: "4.26.0-1", Acceptance: "PartnerSupported"},
				{Path: "/vmfs/volumes/shared-01/nmst.vib", Name: "nmst", Version: "4.26.0-2", Acceptance: "PartnerSupported"},
			},
		}
	}
	for i := range inv.Guests {
		inv.Guests[i].Available = append(inv.Guests[i].Available, "mlx5_core", "mlx5_ib")
	}
	return inv
}

// withTools adds the tools to the running image.
func withTools(inv *backends.Inventory) *backends.Inventory {
	for i := range inv.Hosts {
		vibs := inv.Hosts[i].System.VIBs.Value
		vibs["mft"], vibs["nmst"] = backends.VIB{Version: "4.26.0-1"}, backends.VIB{Version: "4.26.0-2"}
	}
	return inv
}

// withFirmware makes the card offer VFs, as on a host that was booted with SRIOV_EN=1.
func withFirmware(inv *backends.Inventory, offered int) *backends.Inventory {
	for i := range inv.Hosts {
		for n := range inv.Hosts[i].NICs {
			inv.Hosts[i].NICs[n].SRIOV.Max = offered
		}
	}
	return inv
}

// ready has 8 VFs on vmnic2 by max_vfs, with PFC.
func ready(inv *backends.Inventory) *backends.Inventory {
	withFirmware(inv, 16)
	for i := range inv.Hosts {
		h := &inv.Hosts[i]
		h.PowerPolicy = "static"
		*h.NIC("vmnic2").SRIOV = backends.SRIOV{Capable: true, Enabled: true, Active: true, Max: 16, Requested: 8, VFs: 8}
		h.System.Modules[connectX.Driver()].Value.Params["max_vfs"] = "0,0,8,0"
		for k, v := range map[string]string{"pfctx": "8", "pfcrx": "0x08", "trust_state": "2", "ecn": "1"} {
			h.System.Modules[connectX.Driver()].Value.Params[k] = v
		}
		h.System.Modules[connectX.RDMA()].Value.Params["dscp_force"] = "26"
	}
	return inv
}

func sriovAnswers(inv *backends.Inventory) *answers.Answers {
	a := newAnswers(inv)
	d := answers.Default(answers.SRIOV)
	a.Mode, a.QoS, a.SRIOV = d.Mode, d.QoS, d.SRIOV
	a.SRIOV.Components = []string{"/vmfs/volumes/shared-01/mft.vib", "/vmfs/volumes/shared-01/nmst.vib"}
	return a
}

func hostChange(host string, kind backends.Kind, name string) string {
	return backends.Setting{Target: backends.HostRef(host), Kind: kind, Name: name}.ID()
}

func reboots(p *plan.Plan, host string) int {
	n := 0
	for _, b := range p.Brackets {
		if b.Kind == backends.BracketReboot && b.Target.Name == host {
			n++
		}
	}
	return n
}
