package vsphere_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	events "github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

const mft = "mft-4.28.0.92-0.x86_64.vib"

// TestOneSystemFaultEach sets what a host is made of while one call each goes wrong once in a way that passes.
func TestOneSystemFaultEach(t *testing.T) {
	steps := []struct {
		s backends.Setting
		v any
	}{
		{host1(backends.KindPower, ""), "static"},
		{host1(backends.KindPassthrough, "0000:af:00.0"), true},
		{host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"max_vfs": "0,0,8,0", "trust_state": "2"}},
		{host1(backends.KindComponent, "mft"), "4.28.0.92-0"},
	}
	for _, method := range []string{"ConfigurePowerPolicy", "UpdatePassthruConfig", "RetrievePropertiesEx", "ExecuteSoap", "RetrieveManagedMethodExecuter"} {
		for _, do := range []string{"drop", "drop-after", "http:503", "fault:NotAuthenticated"} {
			t.Run(method+" "+do, func(t *testing.T) {
				t.Parallel()
				l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: "bare"})
				c.Depots([]string{depot + mft})
				for nth := range 3 { // of ExecuteSoap the first calls only describe commands
					if err := l.World().Faults.Add("method=" + method + ",nth=" + string(rune('1'+3*nth)) + ",do=" + do); err != nil {
						t.Fatal(err)
					}
				}
				set := c.Setters()
				for _, step := range steps {
					mustSet(t, set, step.s, step.v)
				}
				for _, step := range steps {
					if got := read(t, set, step.s); got != backends.ValueOf(step.v) {
						t.Errorf("%s reads %s", step.s.ID(), got)
					}
				}
			})
		}
	}
}

func TestSystemRefuses(t *testing.T) {
	type row struct {
		name, scenario string
		s              backends.Setting
		v              any
		kind           backends.ErrorKind
		text, hint     string
	}
	last := func(s backends.Setting) backends.Setting { s.Target = backends.HostRef("esx-02"); return s }
	for _, r := range []row{
		{"no such policy", "healthy", host1(backends.KindPower, ""), "turbo", backends.KindPermanent, `no power policy "turbo"`, "static"},
		{"no such device", "healthy", host1(backends.KindVFs, "0000:99:00.0"), backends.VFSpec{Enabled: true, VFs: 1}, backends.KindPermanent, "no PCI device", "discover"},
		{"SR-IOV off in the firmware", "bare", host1(backends.KindVFs, "0000:3b:00.0"), backends.VFSpec{Enabled: true, VFs: 8}, backends.KindRefused, "offers no SR-IOV", "SRIOV_EN"},
		{"0 VFs", "healthy", host1(backends.KindVFs, "0000:3b:00.0"), backends.VFSpec{Enabled: true}, backends.KindRefused, "0 VFs", "1 VF at least"},
		{"more VFs than the firmware gives", "healthy", host1(backends.KindVFs, "0000:3b:00.0"), backends.VFSpec{Enabled: true, VFs: 17}, backends.KindRefused, "supports 16", "NUM_OF_VFS"},
		{"not a device to pass through", "healthy", host1(backends.KindPassthrough, "0000:17:00.0"), true, backends.KindRefused, "cannot be passed through", "VT-d"},
		{"parameter that the driver lacks", "healthy", host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"drss": "4"}, backends.KindRefused, "no parameter drss", "DRSS"},
		{"blank in a value", "healthy", host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"ecn": "1 max_vfs=8"}, backends.KindRefused, "cannot be the value", ""},
		{"quote in a value", "healthy", host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"ecn": `1"`}, backends.KindRefused, "cannot be the value", ""},
		{"empty value", "healthy", host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"ecn": ""}, backends.KindRefused, "cannot be the value", ""},
		{"no such module", "healthy", host1(backends.KindModuleParams, "nmlx9_core"), map[string]string{}, backends.KindPermanent, "Invalid Module name", ""},
		{"file does not hold it", "bare", host1(backends.KindComponent, "nmst"), "1.0", backends.KindRefused, "no file that was named holds it", "mft 4.28.0.92-0"},
		{"acceptance level (Secure Boot)", "sriov-acceptance", last(host1(backends.KindComponent, "mft")), "4.28.0.92-0", backends.KindPermanent, "acceptance level is partner", "esxcli software acceptance set"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, Scenario: r.scenario})
			c.Depots([]string{depot + mft})
			before := len(l.World().Log.Events())
			err := c.Setters()[r.s.Kind].Set(t.Context(), r.s, backends.ValueOf(r.v), nil)
			check(t, err, r.kind, r.text)
			if hint := backends.HintOf(err); !strings.Contains(hint, r.hint) {
				t.Errorf("hint %q, want %q in it", hint, r.hint)
			}
			for _, e := range l.World().Log.Events()[before:] {
				if e.What == events.HostModule || e.What == events.HostImage || e.What == events.HostHardware {
					t.Errorf("something was written: %+v", e)
				}
			}
		})
	}
}

func TestComponentDepots(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: "bare"})
	set, s := c.Setters(), host1(backends.KindComponent, "nmlx5-core")
	bundle := depot + "nmlx5-4.24.0.7.zip"
	l.World().View(func(w *events.State) {
		w.Depot = append(w.Depot, &events.Package{Path: bundle, VIBs: []events.VIB{
			{Name: "nmlx5-core", Version: "4.24.0.7-1", Vendor: "MEL", Acceptance: "VMwareCertified"},
			{Name: "nmlx5-rdma", Version: "4.24.0.7-1", Vendor: "MEL", Acceptance: "VMwareCertified"}}})
	})
	to := backends.ValueOf("4.24.0.7-1")
	for _, r := range []struct {
		name       string
		depots     []string
		kind       backends.ErrorKind
		text, hint string
	}{
		{"none named", nil, backends.KindRefused, "no file that was named", "sriov.components"},
		{"not absolute", []string{"rdma/" + mft}, backends.KindRefused, "not an absolute path", "/vmfs/volumes/DATASTORE/FILE"},
		{"not there", []string{depot + "no.zip"}, backends.KindPermanent, "the installer refuses", "has the datastore"},
		{"a VIB that is none", []string{depot + "no.vib"}, backends.KindPermanent, "the installer refuses", "has the datastore"},
	} {
		t.Run(r.name, func(t *testing.T) {
			c.Depots(r.depots)
			err := set[s.Kind].Set(t.Context(), s, to, nil)
			check(t, err, r.kind, r.text)
			if hint := backends.HintOf(err); !strings.Contains(hint, r.hint) {
				t.Errorf("hint %q", hint)
			}
		})
	}
	c.Depots([]string{depot + "no.vib", depot + mft, bundle})
	mustSet(t, set, s, to)
	if v := read(t, set, host1(backends.KindComponent, "nmlx5-rdma")); v != to {
		t.Errorf("the other VIB of the bundle is %s", v)
	}
	err := set[s.Kind].Set(t.Context(), s, backends.Absent, nil)
	check(t, err, backends.KindRefused, "not removed")
}

func TestSystemSurvey(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 3, VMs: 1, Scenario: "sriov-ready", Faults: []string{"host=esx-03,command=esxcli software vib list,do=fail:vib database is locked"}})
	before := c.Calls()
	all := c.System(t.Context(), []string{"esx-01", "esx-02", "esx-03", "esx-99"}, vsphere.SystemOptions{Parallel: 2, Depots: []string{depot + "no.zip"}})
	if n := c.Calls() - before; n > 3*25+3 {
		t.Errorf("%d calls for three hosts", n)
	}
	one := all["esx-01"]
	if one.Error != "" || one.Acceptance != "PartnerSupported" || one.VIBs["mft"] == "" || one.NextVIBs != nil {
		t.Errorf("%+v", one)
	}
	core := one.Modules["nmlx5_core"]
	if !core.Loaded || core.Version == "" || !slices.Contains(core.Known, "max_vfs") || core.Params["max_vfs"] != "0,0,8,0" || one.Modules["nmlx5_rdma"].Params["dscp_force"] != "26" {
		t.Errorf("%+v", one.Modules)
	}
	if vfs := one.VFs["vmnic2"]; len(vfs) != 8 || vfs[0] != "0000:3b:00.2" {
		t.Errorf("VFs %v", one.VFs)
	}
	if len(one.Offers) != 1 || one.Offers[0].Error == "" {
		t.Errorf("offers %+v", one.Offers)
	}
	if three := all["esx-03"]; !strings.Contains(three.Error, "vib database is locked") || three.Modules == nil {
		t.Errorf("%+v", three)
	}
	if all["esx-99"] == nil || !strings.Contains(all["esx-99"].Error, "no host") {
		t.Errorf("%+v", all["esx-99"])
	}
}

// A host that does not answer keeps nobody waiting longer than its limit.
func TestSystemSurveyLimit(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, Faults: []string{"host=esx-02,method=ExecuteSoap,do=hang"}})
	all := c.System(t.Context(), []string{"esx-01", "esx-02"}, vsphere.SystemOptions{Limit: 2 * time.Second})
	if all["esx-01"].Error != "" || all["esx-02"].Error == "" {
		t.Errorf("%v", slices.Sorted(maps.Keys(all)))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if all := c.System(ctx, []string{"esx-01"}, vsphere.SystemOptions{}); all["esx-01"].Error == "" {
		t.Error("asked although it was over")
	}
}

// Before 8.0 esxcli prints the addresses of VFs in decimal.
func TestDecimalVFs(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: "sriov-ready"})
	l.World().View(func(s *events.State) { s.Hosts[0].Version = "7.0.3" })
	if vfs := c.System(t.Context(), []string{"esx-01"}, vsphere.SystemOptions{})["esx-01"].VFs["vmnic2"]; len(vfs) != 8 || vfs[0] != "0000:3b:00.2" {
		t.Errorf("%v", vfs)
	}
}
