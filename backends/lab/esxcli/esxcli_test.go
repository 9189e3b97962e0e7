package esxcli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/simulator/esx"

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
	given := map[string]string{"nicname": "vmnic2", "device": "vmrdma0", "module": "nmlx5_core", "rulesetid": "pvrdma",
		"option": "/Net/PVRDMAVmknic"}
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

// The answers have the properties in the type information of a real host. govmomi contains a recording of it
// (simulator/esx/type_info.go, from an ESXi 8.0.2).
func TestColumnsOfRecordedTypes(t *testing.T) {
	recorded := map[string][]string{}
	for _, d := range esx.TypeInfo.DataTypeInfo {
		for _, p := range d.Property {
			recorded[d.WsdlName] = append(recorded[d.WsdlName], p.Name)
		}
	}
	w, compared := lab(t), 0
	for _, c := range esxcli.Commands() {
		if c.Writes {
			continue
		}
		a, err := c.Run(w, "esx-01", esxcli.Args{})
		if err != nil || len(a.Rows) == 0 {
			continue
		}
		kind := "VimEsxCLI" + strings.Join(c.Path, "") + a.Type
		if recorded[kind] == nil {
			for name := range recorded {
				if strings.HasPrefix(name, "VimEsxCLI"+strings.Join(c.Path, "")) {
					t.Errorf("%s: type %s, recorded %s", strings.Join(c.Path, " "), kind, name)
				}
			}
			continue
		}
		compared++
		var got []string
		for _, f := range a.Rows[0] {
			got = append(got, f.Key())
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(recorded[kind])); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", strings.Join(c.Path, " "), got, want)
		}
	}
	if compared < 4 {
		t.Errorf("%d commands compared", compared)
	}
}

// restart reboots the host, so that pending settings take effect.
func restart(t *testing.T, w *world.World) {
	t.Helper()
	if err := w.LoseHost("esx-01"); err != nil {
		t.Fatal(err)
	}
	if err := w.RestoreHost("esx-01"); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, w *world.World, line string) string {
	t.Helper()
	a, err := run(t, w, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return text(a)
}

// text returns an answer as lines of NAME: VALUE.
func text(a esxcli.Answer) string {
	var b strings.Builder
	b.WriteString(a.Text)
	for _, row := range a.Rows {
		for _, f := range row {
			b.WriteString(f.Name + ": " + f.Value + strings.Join(f.List, ", ") + "\n")
		}
	}
	return b.String()
}

func TestVFsThroughModuleParameters(t *testing.T) {
	w := lab(t)
	must(t, w, "system module parameters set -m nmlx5_core -p max_vfs=0,0,2,1")
	if _, err := run(t, w, "network sriovnic vf list -n vmnic2"); err == nil {
		t.Error("VFs before the reboot")
	}
	restart(t, w)
	want := "VF ID: 0\nActive: false\nPCI Address: 0000:3b:00.2\nOwner World ID: -\nVF ID: 1\nActive: false\nPCI Address: " +
		"0000:3b:00.3\nOwner World ID: -\n"
	if got := must(t, w, "network sriovnic vf list -n vmnic2"); got != want {
		t.Errorf("vf list:\n%s\nwant\n%s", got, want)
	}
	w.View(func(s *world.State) { s.Host("esx-01").Version = "7.0.3" })
	if got := must(t, w, "network sriovnic vf list -n vmnic3"); !strings.Contains(got, "00000:059:02.2") {
		t.Errorf("older releases print decimal addresses:\n%s", got)
	}
}

func TestPFCSuspendsPause(t *testing.T) {
	w := lab(t)
	if err := w.SetModule("esx-01", world.Nmlx5, "pfctx=0x08 pfcrx=0x08"); err != nil {
		t.Fatal(err)
	}
	if got := must(t, w, "network nic dcb status get -n vmnic0"); !strings.Contains(got,
		"PFC Enabled: false\nPFC Configuration: 0 0 0 0 0 0 0 0\n") {
		t.Errorf("PFC before the reboot:\n%s", got)
	}
	restart(t, w)
	// The parameters apply to every port of the driver, including that of the management NIC.
	if got := must(t, w, "network nic dcb status get -n vmnic0"); !strings.Contains(got,
		"PFC Enabled: true\nPFC Configuration: 0 0 0 1 0 0 0 0\n") {
		t.Errorf("PFC:\n%s", got)
	}
	if got := must(t, w, "network nic pauseParams list -n vmnic0"); !strings.Contains(got, "Pause RX: false\nPause TX: false\n") {
		t.Errorf("global pause beside PFC:\n%s", got)
	}
}

func TestVIBs(t *testing.T) {
	w := lab(t)
	w.View(func(s *world.State) {
		s.Depot = []*world.Package{{Path: "/vmfs/volumes/shared-01/tools.vib", VIBs: []world.VIB{
			{Name: "mft", Version: "4.30.0.111-0", Vendor: "MEL", Acceptance: "PartnerSupported"}}}}
	})
	if got := must(t, w, "software sources vib get -v /vmfs/volumes/shared-01/tools.vib"); !strings.Contains(got,
		"Name: mft\nVersion: 4.30.0.111-0\n") {
		t.Errorf("what the file holds:\n%s", got)
	}
	if _, err := run(t, w, "software sources vib list -d /vmfs/volumes/shared-01/tools.vib"); err == nil ||
		!strings.Contains(err.Error(), "[MetadataDownloadError]") {
		t.Errorf("a VIB taken for a bundle: %v", err)
	}
	if got := must(t, w, "software vib list --rebooting-image"); got != "" {
		t.Errorf("an image of the next boot before anything is staged:\n%s", got)
	}
	got := must(t, w, "software vib install -v /vmfs/volumes/shared-01/tools.vib")
	want := "" +
		"Message: The update completed successfully, but the system needs to be rebooted for the changes to be effective.\n" +
		"VIBs Installed: MEL_bootbank_mft_4.30.0.111-0\n" +
		"VIBs Removed: MEL_bootbank_mft_4.28.0.92-0\n" +
		"VIBs Skipped: \n" +
		"Reboot Required: true\n" +
		"DPU Results: \n"
	if got != want {
		t.Errorf("install:\n%s\nwant\n%s", got, want)
	}
	if now, next := must(t, w, "software vib list"),
		must(t, w, "software vib list --rebooting-image"); !strings.Contains(now, "4.28.0.92-0") ||
		!strings.Contains(next, "4.30.0.111-0") || strings.Contains(now, "4.30.0.111-0") {
		t.Errorf("now:\n%s\nnext:\n%s", now, next)
	}
	if got := must(t, w, "software vib remove -n mft -n nmst"); !strings.Contains(got,
		"VIBs Removed: MEL_bootbank_mft_4.30.0.111-0, MEL_bootbank_nmst_") {
		t.Errorf("remove:\n%s", got)
	}
	if got := must(t, w, "software acceptance get"); got != "PartnerSupported" {
		t.Errorf("acceptance %q", got)
	}
	for line, want := range map[string]string{
		"software vib install": "One and only one of --depot or --viburl must be given.",
		"software vib install -v /nosuch.vib": " [VibDownloadError]\n ('/nosuch.vib', '', \"[Errno 2] No such file or directory: " +
			"'/nosuch.vib'\")\n Please refer to the log file for more details.",
		"software vib remove -n nosuch": " [NoMatchError]\n No VIB matching VIB search specification 'nosuch'.\n Please " +
			"refer to the log file for more details.",
		"network sriovnic vf list -n vmnic2":                "There is no SRIOV Nic with name vmnic2",
		"network nic dcb status get -n vmnic9":              "NIC vmnic9 does not exist",
		"system module parameters set -m nmlx5_core -p x=1": "Unable to set module parameters: parameter x of nmlx5_core: not found",
	} {
		if _, err := run(t, w, line); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}
