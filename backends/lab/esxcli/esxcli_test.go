package esxcli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/esxcli"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// run runs a command line; its options are named as the command's parameters say.
func run(t *testing.T, w *world.World, line string) (esxcli.Answer, error) {
	t.Helper()
	words := strings.Fields(line)
	c, n := esxcli.Find(words)
	if c == nil {
		t.Fatalf("no command %q", line)
	}
	args := esxcli.Args{}
	for i := n; i < len(words); i++ {
		k := slices.IndexFunc(c.Params, func(p esxcli.Param) bool { return words[i] == "-"+p.Short || words[i] == "--"+p.Long })
		if k < 0 {
			t.Fatalf("%s: no option %s", line, words[i])
		}
		name, value := c.Params[k].Name, "true"
		if !c.Params[k].Flag {
			i++
			value = words[i]
		}
		if args[name] != "" {
			value = args[name] + "," + value
		}
		args[name] = value
	}
	return c.Run(w, "esx-01", args)
}

func lab(t *testing.T) *world.World {
	t.Helper()
	w, err := scenario.New(scenario.Spec{Hosts: 2, VMs: 2, Scenario: "done"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func TestRefused(t *testing.T) {
	w := lab(t)
	for line, want := range map[string]string{
		"network nic get -n vmnic9":                              "NIC vmnic9 does not exist",
		"system settings advanced set -o /Net/NoSuch -s x":       "Unable to find option",
		"system settings advanced set -o /Net/PVRDMAVmknic -i 1": "Option expects a string value",
		"system settings advanced set -o /Net/TcpipHeapMax -s x": "Option expects an integer value",
		"network firewall ruleset set -r nosuch -e true":         "Unable to find ruleset nosuch",
		"network firewall ruleset set -r pvrdma -e perhaps":      `Argument type mismatch: invalid boolean value "perhaps"`,
		"system module parameters set -m nosuch -p a=1":          "Unable to set module parameters: module nosuch: not found",
		"network diag ping -H 10.10.0.12 -I vmk0 -s 1473 -d":     "sendto() failed (Message too long)",
		"rdma device stats get -d vmrdma7":                       "RDMA device vmrdma7 not found",
	} {
		if _, err := run(t, w, line); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}

func TestParametersAppend(t *testing.T) {
	w := lab(t)
	for _, line := range []string{
		"system module parameters set -m nmlx5_core -p pfctx=8",
		"system module parameters set -m nmlx5_core -a -p pfcrx=8",
	} {
		if _, err := run(t, w, line); err != nil {
			t.Fatal(err)
		}
	}
	value := func(name string) (v string) {
		w.View(func(s *world.State) { v = s.Host("esx-01").Module("nmlx5_core").Parameter(name).Value })
		return v
	}
	if value("pfctx") != "8" || value("pfcrx") != "8" {
		t.Errorf("pfctx %q, pfcrx %q", value("pfctx"), value("pfcrx"))
	}
	// Without append, the other parameters are reset to their defaults. The guides do not mention this.
	if _, err := run(t, w, "system module parameters set -m nmlx5_core -p max_vfs=0,0,8,8"); err != nil {
		t.Fatal(err)
	}
	if value("pfctx") != "" || value("max_vfs") != "0,0,8,8" {
		t.Errorf("pfctx %q, max_vfs %q", value("pfctx"), value("max_vfs"))
	}
}

func TestCountersMove(t *testing.T) {
	w := lab(t)
	if err := w.AddTraffic("esx-01", "vmrdma0", world.Counters{PacketsSent: 10, BytesSent: 40960, QueuePairs: 1}); err != nil {
		t.Fatal(err)
	}
	a, err := run(t, w, "rdma device stats get -d vmrdma0")
	if err != nil {
		t.Fatal(err)
	}
	if out := text(a); !strings.Contains(out, "Packets sent: 10\n") || !strings.Contains(out, "Bytes sent: 40960\n") {
		t.Errorf("counters:\n%s", out)
	}
}

// Every command answers on every host without a panic.
func TestEveryCommand(t *testing.T) {
	w := lab(t)
	if err := w.Update(func(s *world.State) ([]world.Event, error) { s.Services.VSAN = true; return nil, nil }); err != nil {
		t.Fatal(err)
	}
	given := map[string]string{"nicname": "vmnic2", "device": "vmrdma0", "module": "nmlx5_core", "rulesetid": "pvrdma", "option": "/Net/PVRDMAVmknic"}
	for _, c := range esxcli.Commands() {
		args := esxcli.Args{}
		for _, p := range c.Params {
			args[p.Name] = given[p.Name]
		}
		if c.Writes || c.Path[len(c.Path)-1] == "ping" || strings.Join(c.Path, " ") == "network sriovnic vf list" || c.Path[1] == "sources" {
			continue // the lab refuses PCI functions without VFs, and files that are not on the datastore
		}
		a, err := c.Run(w, "esx-02", args)
		if err != nil {
			t.Errorf("%v: %v", c.Path, err)
		}
		for _, row := range a.Rows {
			if len(row) != len(a.Rows[0]) {
				t.Errorf("%v: rows of different length", c.Path)
			}
		}
	}
}
