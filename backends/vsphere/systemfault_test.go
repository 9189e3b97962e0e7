package vsphere_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	events "github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/system"
)

const mft = "mft-4.28.0.92-0.x86_64.vib"

// TestOneSystemFaultEach sets settings of hosts while one call of each fails once with a transient error.
func TestOneSystemFaultEach(t *testing.T) {
	testclass.Plain(t)
	steps := []struct {
		s backends.Setting
		v any
	}{
		{host1(backends.KindPower, ""), "static"},
		{host1(backends.KindPassthrough, "0000:af:00.0"), true},
		{host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"max_vfs": "0,0,8,0", "trust_state": "2"}},
		{host1(backends.KindComponent, "mft"), "4.28.0.92-0"},
	}
	for _, method := range []string{"ConfigurePowerPolicy", "UpdatePassthruConfig", "RetrievePropertiesEx", "ExecuteSoap",
		"RetrieveManagedMethodExecuter"} {
		for _, do := range []string{"drop", "drop-after", "http:503", "fault:NotAuthenticated"} {
			t.Run(method+" "+do, func(t *testing.T) {
				t.Parallel()
				l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: "bare"})
				c.Depots([]string{depot + mft})
				for nth := range 3 { // the first calls of ExecuteSoap only describe commands
					testclass.OK(t, l.World().Faults.Add("method="+method+",nth="+string(rune('1'+3*nth))+",do="+do))
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
		{"no such device", "healthy", host1(backends.KindVFs, "0000:99:00.0"), backends.VFSpec{Enabled: true, VFs: 1}, backends.KindPermanent,
			"no PCI device", "discover"},
		{"SR-IOV off in the firmware", "bare", host1(backends.KindVFs, "0000:3b:00.0"), backends.VFSpec{Enabled: true, VFs: 8},
			backends.KindRefused, "offers no SR-IOV", "SRIOV_EN"},
		{"0 VFs", "healthy", host1(backends.KindVFs, "0000:3b:00.0"), backends.VFSpec{Enabled: true}, backends.KindRefused, "0 VFs",
			"1 VF at least"},
		{"more VFs than the firmware gives", "healthy", host1(backends.KindVFs, "0000:3b:00.0"), backends.VFSpec{Enabled: true, VFs: 17},
			backends.KindRefused, "supports 16", "NUM_OF_VFS"},
		{"not a device to pass through", "healthy", host1(backends.KindPassthrough, "0000:17:00.0"), true, backends.KindRefused,
			"cannot be passed through", "VT-d"},
		{"parameter that the driver lacks", "healthy", host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"drss": "4"},
			backends.KindRefused, "no parameter drss", "DRSS"},
		{"blank in a value", "healthy", host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"ecn": "1 max_vfs=8"},
			backends.KindRefused, "cannot be the value", ""},
		{"quote in a value", "healthy", host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"ecn": `1"`}, backends.KindRefused,
			"cannot be the value", ""},
		{"empty value", "healthy", host1(backends.KindModuleParams, "nmlx5_core"), map[string]string{"ecn": ""}, backends.KindRefused,
			"cannot be the value", ""},
		{"no such module", "healthy", host1(backends.KindModuleParams, "nmlx9_core"), map[string]string{}, backends.KindPermanent,
			"Invalid Module name", ""},
		{"file does not hold it", "bare", host1(backends.KindComponent, "nmst"), "1.0", backends.KindRefused, "no file that was named holds it",
			"mft 4.28.0.92-0"},
		{"acceptance level (Secure Boot)", "sriov-acceptance", last(host1(backends.KindComponent, "mft")), "4.28.0.92-0", backends.KindPermanent,
			"acceptance level is partner", "esxcli software acceptance set"},
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

// asked reads the inventory and surveys the named hosts; a host that is not in the inventory is passed by its name alone.
func asked(t *testing.T, c *vsphere.Client, ctx context.Context, o vsphere.SystemOptions, names ...string) map[string]*backends.HostSystem {
	t.Helper()
	inv, err := c.Inventory(t.Context(), backends.Scope{})
	testclass.OK(t, err)
	o.PNICs = map[string][]string{}
	var hosts []*backends.Host
	for _, name := range names {
		h := inv.Host(name)
		if h == nil {
			h = &backends.Host{Name: name}
		}
		o.PNICs[name] = []string{"vmnic2"}
		hosts = append(hosts, h)
	}
	c.System(ctx, hosts, o)
	all := map[string]*backends.HostSystem{}
	for _, h := range hosts {
		all[h.Name] = h.System
	}
	return all
}

// A question that fails costs only its own answer.
func TestSystemSurvey(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 3, VMs: 1, Scenario: "sriov-ready",
		Faults: []string{"host=esx-03,command=esxcli software vib list,do=fail:vib database is locked"}})
	o := vsphere.SystemOptions{Parallel: 2, Depots: []string{depot + "no.zip"}, Ask: []system.Question{
		system.Counters, system.Modules, system.VIBs, system.NextVIBs, system.Acceptance, system.Offers, system.Exceptions, system.Pause,
		system.VFs, system.Neighbours, system.Resync, system.BootDevice,
	}}
	all := asked(t, c, t.Context(), o, "esx-01", "esx-02", "esx-03", "esx-99")
	one := all["esx-01"]
	if one.Acceptance != backends.FactOf("PartnerSupported") || one.VIBs.Value["mft"].Version == "" ||
		one.VIBs.Value["mft"].Acceptance == "" || one.NextVIBs.State != backends.FactAbsent {
		t.Errorf("%+v", one)
	}
	core := one.Module("nmlx5_core")
	if !slices.Contains(core.Known, "max_vfs") || core.Params["max_vfs"] != "0,0,8,0" ||
		one.Module("nmlx5_rdma").Params["dscp_force"] != "26" {
		t.Errorf("%+v", one.Modules)
	}
	if vfs := one.VFs["vmnic2"].Value; len(vfs) != 8 || vfs[0].Address != "0000:3b:00.2" {
		t.Errorf("VFs %v", one.VFs)
	}
	if len(one.Offers) != 1 || one.Offers[0].Error == "" {
		t.Errorf("offers %+v", one.Offers)
	}
	if !one.Pause.Known() || one.Neighbours.Value["vmnic2"].Switch != "leaf-01" || !one.Stats["vmnic2"].Known() || !one.DCB["vmnic2"].Known() {
		t.Errorf("%+v", one)
	}
	for what, state := range map[string]backends.FactState{"exceptions": one.Exceptions.State, "resync": one.Resync.State,
		"boot device": one.BootDevice.State} {
		if state != backends.FactAbsent {
			t.Errorf("%s: %q, and there is none to have", what, state)
		}
	}
	three := all["esx-03"]
	if !strings.Contains(three.VIBs.Why, "vib database is locked") || !strings.Contains(three.NextVIBs.Why, "vib database is locked") {
		t.Errorf("VIBs %+v", three.VIBs)
	}
	if !three.Modules["nmlx5_core"].Known() || !three.Acceptance.Known() || !three.Pause.Known() || !three.Stats["vmnic2"].Known() ||
		!three.Neighbours.Known() {
		t.Errorf("the list of VIBs took others with it: %+v", three)
	}
	if gone := all["esx-99"]; gone.Pause.State != backends.FactUnreadable || !strings.Contains(gone.Pause.Why, "no host") {
		t.Errorf("%+v", gone)
	}
}

// Facts that were read are not read again.
func TestSystemIsAskedOnce(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1})
	inv, err := c.Inventory(t.Context(), backends.Scope{})
	testclass.OK(t, err)
	hosts := []*backends.Host{inv.Host("esx-01"), inv.Host("esx-02")}
	o := vsphere.SystemOptions{Ask: []system.Question{system.Modules, system.Pause}}
	c.System(t.Context(), hosts, o)
	before := l.World().Log.Calls()["ExecuteSoap"]
	if before != 6 { // two modules and pause, on two hosts
		t.Errorf("%d calls", before)
	}
	o.Ask = append(o.Ask, system.Acceptance)
	c.System(t.Context(), hosts, o)
	if n := l.World().Log.Calls()["ExecuteSoap"] - before; n != 2 {
		t.Errorf("%d calls for one more question to two hosts", n)
	}
}

// A host that does not answer delays the survey no longer than its limit, and hardly if it was silent before.
func TestSystemSurveyLimit(t *testing.T) {
	_, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, Faults: []string{"host=esx-02,do=hang"}})
	o := vsphere.SystemOptions{Limit: 2 * time.Second, Ask: []system.Question{system.Pause}}
	all := asked(t, c, t.Context(), o, "esx-01", "esx-02")
	if !all["esx-01"].Pause.Known() || all["esx-02"].Pause.State != backends.FactUnreadable {
		t.Errorf("%+v", all)
	}
	o.Limit = time.Hour
	if again := asked(t, c, t.Context(), o, "esx-02")["esx-02"]; again.Pause.State != backends.FactUnreadable {
		t.Errorf("%+v", again)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if all := asked(t, c, ctx, o, "esx-01"); all["esx-01"].Pause.Known() {
		t.Error("asked although it was over")
	}
}

// Before 8.0 esxcli prints the addresses of VFs in decimal.
func TestDecimalVFs(t *testing.T) {
	l, c := startLab(t, lab.Options{Hosts: 1, VMs: 1, Scenario: "sriov-ready"})
	l.World().View(func(s *events.State) { s.Hosts[0].Version = "7.0.3" })
	vfs := asked(t, c, t.Context(), vsphere.SystemOptions{Ask: []system.Question{system.VFs}}, "esx-01")["esx-01"].VFs["vmnic2"].Value
	if len(vfs) != 8 || vfs[0].Address != "0000:3b:00.2" {
		t.Errorf("%v", vfs)
	}
}
