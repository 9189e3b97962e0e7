package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

var made = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// sameErrors compares errors by their texts, which is all that a bundle keeps.
var sameErrors = cmp.Comparer(func(a, b error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Error() == b.Error()
})

// everyFact fills every field of the facts, so that the test notices a new field that a bundle does not store.
func everyFact(t *testing.T) *checks.Facts {
	f := &checks.Facts{}
	fill(t, reflect.ValueOf(f).Elem(), "Facts")
	f.Answers = nil
	for _, inv := range []*backends.Inventory{f.Inventory, f.Baseline} {
		inv.VCenter.User, inv.Guests[0].User = "root", "root" // values that are not secret stay
		for i := range inv.Hosts {
			inv.Hosts[i].System.Exceptions.Value = []string{"root"}
		}
	}
	f.Inventory.VCenter.ClockAsked, f.Baseline.VCenter.ClockAsked = f.Now, time.Time{}
	return f
}

func fill(t *testing.T, v reflect.Value, at string) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(made))
		return
	case *answers.Answers:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), at+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), at)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), at)
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), at)
		}
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, k, at)
		fill(t, e, at)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Interface:
		if v.Type() != reflect.TypeFor[error]() {
			t.Fatalf("%s: nobody knows how to keep a %s", at, v.Type())
		}
		v.Set(reflect.ValueOf(errors.New("why of " + at)))
	case reflect.String:
		v.SetString("value of " + at)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	default:
		t.Fatalf("%s: nobody fills a %s", at, v.Kind())
	}
}

func packed(t testing.TB, b *bundle.Bundle) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := bundle.Write(&out, b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestEveryFactSurvives(t *testing.T) {
	f := everyFact(t)
	want := &bundle.Bundle{Tool: "1.2.3", Made: made, Quick: true, Kept: made.Add(-time.Hour), Facts: f}
	got, err := bundle.Read(bytes.NewReader(packed(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, sameErrors, cmpopts.IgnoreUnexported(checks.Facts{}), cmpopts.EquateComparable(backends.Value{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A fact that was not read differs from an empty one: the first is unknown, the second may fail.
func TestUnreadStaysUnread(t *testing.T) {
	for _, f := range []*checks.Facts{
		{Inventory: &backends.Inventory{}},
		{
			Inventory: &backends.Inventory{
				Hosts: []backends.Host{{Name: "a",
					System: &backends.HostSystem{Log: []string{}, Pause: backends.FactOf(map[string]backends.PauseSpec{})}}},
				Clusters: []backends.Cluster{},
				Guests:   []backends.Guest{{PCI: []backends.GuestDevice{}, KernelLog: []string{}, Packages: map[string]string{}}}},
			Pairs: []checks.PairFacts{}, Changed: map[string]time.Time{}},
	} {
		got, err := bundle.Read(bytes.NewReader(packed(t, &bundle.Bundle{Facts: f})))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(f, got.Facts, cmpopts.IgnoreUnexported(checks.Facts{}), cmpopts.EquateComparable(backends.Value{})); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
}

// named is a bundle with user names wherever a machine may repeat them.
func named() *bundle.Bundle {
	a := answers.Default(answers.PVRDMA)
	a.VCenter.Username, a.ESXi.User, a.Hosts.Datacenter = "frieda@vsphere.local", "maintainer", "DC"
	vm := answers.DefaultVM("vm-01")
	vm.IP.Prefix, vm.Guest.User = netip.MustParsePrefix("192.168.50.11/24"), "ubuntu"
	a.VMs = []answers.VM{vm}
	return &bundle.Bundle{Made: made, Answers: a, Facts: &checks.Facts{
		LacksErr: errors.New("frieda@vsphere.local may not ask"),
		Inventory: &backends.Inventory{
			VCenter: backends.VCenter{URL: "https://vc.example/sdk", User: "frieda@vsphere.local"},
			Gaps:    []backends.Gap{{Target: backends.HostRef("esx-01"), Why: "Permission denied for frieda@vsphere.local."}},
			Hosts: []backends.Host{{Name: "esx-01", System: &backends.HostSystem{ShellError: "maintainer@esx-01: no key fits",
				VIBs: backends.ReadFact(map[string]backends.VIB(nil), errors.New("frieda@vsphere.local may not")),
				Modules: map[string]backends.Fact[backends.Module]{"nic_driver": backends.ReadFact(backends.Module{},
					errors.New("refused to maintainer"))}, Exceptions: backends.FactOf([]string{"maintainer"})}}},
			Guests: []backends.Guest{{VM: "vm-01", User: "ubuntu", OS: "ubuntu", Pretty: "Ubuntu 24.04",
				SudoError: "sorry, user ubuntu may not run sudo", KernelLog: []string{"ubuntu: taint"}}},
		},
	}}
}

func TestUserNamesAreLeftOut(t *testing.T) {
	in := named()
	b, err := bundle.Read(bytes.NewReader(packed(t, in)))
	if err != nil {
		t.Fatal(err)
	}
	g, sys := b.Facts.Inventory.Guests[0], b.Facts.Inventory.Hosts[0].System
	for _, got := range []string{
		b.Answers.VCenter.Username, b.Answers.ESXi.User, b.Answers.VMs[0].Guest.User, b.Facts.Inventory.VCenter.User, g.User, g.SudoError,
		g.KernelLog[0],
		b.Facts.LacksErr.Error(), b.Facts.Inventory.Gaps[0].Why, sys.ShellError, sys.VIBs.Why, sys.Modules["nic_driver"].Why,
		sys.Exceptions.Value[0],
	} {
		if strings.Contains(got, "frieda") || strings.Contains(got, "maintainer") || strings.Contains(got, "ubuntu") ||
			!strings.Contains(got, bundle.Redacted) {
			t.Errorf("%q", got)
		}
	}
	if g.OS != "ubuntu" || g.Pretty != "Ubuntu 24.04" {
		t.Errorf("the system went with the user: %q, %q", g.OS, g.Pretty)
	}
	if in.Answers.VMs[0].Guest.User != "ubuntu" || in.Facts.Inventory.VCenter.User != "frieda@vsphere.local" ||
		in.Facts.Inventory.Guests[0].KernelLog[0] != "ubuntu: taint" {
		t.Error("what was bundled was changed itself")
	}
}

func TestTheSameFactsGiveTheSameFindings(t *testing.T) {
	a := answers.Default(answers.PVRDMA)
	a.Hosts.Datacenter = "DC"
	f := &checks.Facts{Answers: a, Now: made, Inventory: &backends.Inventory{
		VCenter: backends.VCenter{URL: "https://vc.example/sdk", User: "root", Version: "8.0.3", Clock: made.Add(time.Second), ClockAsked: made},
		Hosts: []backends.Host{{Name: "esx-01", Datacenter: "DC", Version: "8.0.3", State: "connected",
			Firewall: map[string]backends.Ruleset{"pvrdma": {}},
			System:   &backends.HostSystem{Pause: backends.ReadFact(map[string]backends.PauseSpec(nil), errors.New("no answer"))}}},
	}}
	want := catalogue.Run(context.Background(), f, checks.Selection{Uses: a.Uses()})
	b, err := bundle.Read(bytes.NewReader(packed(t, &bundle.Bundle{Made: made, Answers: a, Facts: f})))
	if err != nil {
		t.Fatal(err)
	}
	b.Facts.Answers = b.Answers
	if d := cmp.Diff(want, catalogue.Run(context.Background(), b.Facts, checks.Selection{Uses: b.Answers.Uses()})); d != "" {
		t.Errorf("(-live +bundle)\n%s", d)
	}
}

func TestTheSameBundleGivesTheSameBytes(t *testing.T) {
	if !bytes.Equal(packed(t, named()), packed(t, named())) {
		t.Error("two writes differ")
	}
}
