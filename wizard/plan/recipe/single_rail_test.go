package recipe_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// exampleOn loads example answers and renames the objects of the inventory to match them.
func exampleOn(t *testing.T, mode string, inv *backends.Inventory) (*answers.Answers, *backends.Inventory) {
	t.Helper()
	raw, err := assets.Example(mode)
	if err != nil {
		t.Fatal(err)
	}
	a, err := answers.Load(bytes.NewReader(raw), mode)
	if err != nil {
		t.Fatal(err)
	}
	host := map[string]string{}
	for i := range inv.Hosts {
		h := &inv.Hosts[i]
		host[h.Name] = h.Name
		if i < len(a.Hosts.Names) {
			host[h.Name] = a.Hosts.Names[i]
		}
		h.Name, h.Datacenter, h.Cluster = host[h.Name], a.Hosts.Datacenter, "compute"
		if a.Hosts.Cluster != "" {
			h.Cluster = a.Hosts.Cluster
		}
		if mac := a.NIC.MACs[h.Name]; mac != "" {
			h.NIC("vmnic2").MAC = string(mac)
		}
	}
	for i := range inv.VMs {
		v := &inv.VMs[i]
		v.Host, v.Datacenter, v.Cluster = host[v.Host], a.Hosts.Datacenter, inv.Hosts[0].Cluster
		v.Name = a.VMs[i].Name
		v.Path = "/" + v.Datacenter + "/vm/" + v.Name
		inv.Guests[i].VM = v.Name
	}
	return a, inv
}

// fingerprint identifies the content of a plan: its changes and brackets without the sentences for display.
func fingerprint(t *testing.T, p *plan.Plan) string {
	t.Helper()
	bare := plan.Plan{Mode: p.Mode, Changes: slices.Clone(p.Changes), Brackets: slices.Clone(p.Brackets)}
	for i := range bare.Changes {
		bare.Changes[i].Why, bare.Changes[i].Irreversible = "", ""
	}
	for i := range bare.Brackets {
		bare.Brackets[i].Why = ""
	}
	return bare.Hash()[:12]
}

// singleRail returns plans for answers with one nic and one switch.
func singleRail(t *testing.T) map[string]func() (*answers.Answers, *backends.Inventory) {
	sriovOn := func(inv *backends.Inventory) func() (*answers.Answers, *backends.Inventory) {
		return func() (*answers.Answers, *backends.Inventory) { return sriovAnswers(inv), inv }
	}
	return map[string]func() (*answers.Answers, *backends.Inventory){
		"example pvrdma": func() (*answers.Answers, *backends.Inventory) { return exampleOn(t, "pvrdma", newInventory(4)) },
		"example sriov":  func() (*answers.Answers, *backends.Inventory) { return exampleOn(t, "sriov", newSRIOV(2)) },
		"example gpudirect": func() (*answers.Answers, *backends.Inventory) {
			inv := newGPUs(2)
			for i := range inv.Hosts {
				h := &inv.Hosts[i]
				at := slices.IndexFunc(h.PCI, func(d backends.PCIDevice) bool { return d.Address == nearGPU })
				h.PCI[at].Address, h.GPUs[0].PCI = "0000:3d:00.0", "0000:3d:00.0"
			}
			return exampleOn(t, "gpudirect", inv)
		},
		"pvrdma": func() (*answers.Answers, *backends.Inventory) {
			inv := newInventory(3)
			return newAnswers(inv), inv
		},
		"pvrdma, lossless": func() (*answers.Answers, *backends.Inventory) {
			inv := newSRIOV(2)
			a := newAnswers(inv)
			a.QoS.Lossless = answers.LosslessPFC
			return a, inv
		},
		"sriov, bare":     sriovOn(newSRIOV(3)),
		"sriov, tools":    sriovOn(withTools(newSRIOV(2))),
		"sriov, firmware": sriovOn(withFirmware(withTools(newSRIOV(2)), 16)),
		"sriov, ready":    sriovOn(ready(newSRIOV(2))),
		"gpudirect, whole card": func() (*answers.Answers, *backends.Inventory) {
			inv := newGPUs(2)
			return gpuAnswers(inv), inv
		},
	}
}

// Answers with one nic and one switch lead to the same plan as before rails existed.
func TestSingleRailIsUnchanged(t *testing.T) {
	golden := map[string]string{
		"example gpudirect":     "9a895090144f",
		"example pvrdma":        "58635cdf4325",
		"example sriov":         "6226c95c3e3e",
		"gpudirect, whole card": "61ea456818f0",
		"pvrdma":                "fe4cd57d0ef3",
		"pvrdma, lossless":      "4a3f2b6fa61f",
		"sriov, bare":           "19f784b46384",
		"sriov, firmware":       "dec5b06fec95",
		"sriov, ready":          "010ba648bc6b",
		"sriov, tools":          "c9c52bd0aa8a",
	}
	for name, world := range singleRail(t) {
		a, inv := world()
		if got := fingerprint(t, mustBuild(t, a, inv, plan.Options{})); got != golden[name] {
			t.Errorf("%q: %q,", name, got)
		}
	}
}
