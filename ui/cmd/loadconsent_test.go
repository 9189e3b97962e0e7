package cmd

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// The cost of loading a real fabric is printed before anything is changed or measured; without a terminal for the consent, the
// command is refused at that point.
func TestConsentToLoadComesFirst(t *testing.T) {
	a := answers.Default(answers.SRIOV)
	a.NIC.Device, a.Measure.Load, a.Switch.PortGroup = "0000:3b:00.0", "incast", "RDMA-PG"
	inv := &backends.Inventory{}
	for i := range 4 {
		host, vm := fmt.Sprintf("esx-%d", i), fmt.Sprintf("vm-%d", i)
		inv.Hosts = append(inv.Hosts, backends.Host{Name: host, NICs: []backends.NIC{{Device: "vmnic2", PCI: "0000:3b:00.0", SpeedMbps: 100000}}})
		inv.VMs = append(inv.VMs, backends.VM{Name: vm, Host: host})
		a.VMs = append(a.VMs, answers.VM{Name: vm, IP: answers.Address{Prefix: netip.MustParsePrefix(fmt.Sprintf("192.168.50.%d/24", i+1))}})
	}
	yes, no, half := true, false, *a
	half.Measure.Pairs = "none"
	changes := plan.Plan{Changes: []plan.Change{{}}}
	for name, c := range map[string]struct {
		yes, terminal bool
		measure       *bool
		plan          plan.Plan
		exit          int
		says          string
		a             *answers.Answers // nil: pairs are measured too
		asked         int
		refused       bool
	}{
		"changes":                  {plan: changes, exit: console.ExitUsage},
		"--measure":                {measure: &yes, exit: console.ExitUsage},
		"--yes":                    {plan: changes, yes: true},
		"--measure=false":          {plan: changes, measure: &no},
		"nothing will be measured": {},
		"on a terminal":            {plan: changes, terminal: true, says: "incast: 4 rounds with up to 3 senders at once", asked: 1},
		"no":                       {plan: changes, terminal: true, says: "incast: 4 rounds", asked: 1, refused: true},
		"no changes":               {terminal: true, says: "incast: 4 rounds", asked: 1},
		"no changes, no":           {terminal: true, says: "incast: 4 rounds", asked: 1, refused: true},
		"no changes, --measure":    {terminal: true, measure: &yes, says: "incast: 4 rounds"},
		"no changes, no pairs":     {terminal: true, a: &half, says: "incast: 4 rounds"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			asked := 0
			env := &console.Env{Stderr: &said, Terminal: func() bool { return c.terminal }, Confirm: func(string) (bool, error) {
				asked++
				return !c.refused, nil
			}}
			r := &runner{env: env, s: &session.Session{}, a: cmp.Or(c.a, a), yes: c.yes, measure: c.measure}
			p := &planned{inv: inv, plan: &c.plan}
			err := r.consentToLoad(p)
			if code := console.ExitCode(err); code != c.exit {
				t.Errorf("%v: exit %d, want %d", err, code, c.exit)
			}
			if !strings.Contains(said.String(), c.says) || c.says == "" && said.Len() > 0 {
				t.Errorf("said %q", said.String())
			}
			switch {
			case !c.terminal:
			case c.plan.Empty():
				err = r.consentToMeasure(p)
			default:
				err = r.consent(p)
			}
			if c.terminal && (err != nil) != (c.refused && !c.plan.Empty()) || asked != c.asked {
				t.Errorf("asked %d times: %v", asked, err)
			}
			plans := session.LoadPlans(r.a, inv)
			if agreed := c.asked > 0 && !c.refused; covers(r.loads, plans) != agreed {
				t.Errorf("a load of this cost is agreed to: %t", !agreed)
			}
			plans[0].Bytes *= 2
			if covers(r.loads, plans) {
				t.Error("a load of twice the bytes is agreed to")
			}
		})
	}
}

// The wizard loads the fabric only with the consent that was given.
func TestWizardLoadsWhatWasAgreedTo(t *testing.T) {
	a := answers.Default(answers.SRIOV)
	a.Measure.Load = "incast"
	of := func(bytes int64) []perftest.LoadPlan {
		return []perftest.LoadPlan{{Load: "incast", Bytes: bytes, Seconds: 20}}
	}
	for name, c := range map[string]struct {
		said, now []perftest.LoadPlan
		agreed    bool
	}{
		"as agreed to": {of(100), of(110), true},
		"more":         {of(100), of(130), false},
		"never said":   {nil, of(1), false},
	} {
		f := &fabric{s: &session.Session{}, loads: c.said}
		if err := f.notLoaded(a, c.now); (err == nil) != c.agreed || err != nil && !strings.Contains(err.Error(), "more than you agreed to") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If a run is stopped while it measures pairs, it does not load the fabric afterwards: with apply and with the wizard.
func TestStoppedRunDoesNotLoad(t *testing.T) {
	a := answers.Default(answers.SRIOV)
	a.Measure.Load, a.Measure.Pairs = "incast", "none"
	stop := make(chan struct{})
	close(stop)
	stopped := func(err error) {
		t.Helper()
		if backends.KindOf(err) != backends.KindInterrupted || !strings.Contains(fmt.Sprint(err), "stopped before the fabric was loaded") {
			t.Errorf("%v", err)
		}
	}
	_, err := (&fabric{s: &session.Session{}}).Measure(t.Context(), a, stop, nil)
	stopped(err)
	_, err = (&runner{env: &console.Env{}, s: &session.Session{}, a: a, stop: stop}).measured(t.Context(),
		&planned{inv: &backends.Inventory{}}, engine.Result{})
	stopped(err)
}

// The cost of a load depends on the ports that the answers select, even if they do not name any. The load after the changes uses
// the ports that the operator agreed to.
func TestCostOfALoadFollowsTheChoice(t *testing.T) {
	for name, wish := range map[string]answers.NIC{"by speed": {Speed: 100000}, "by MAC": {MACs: map[string]answers.MAC{}}, "open": {},
		"by PCI address": {Device: "0000:3b:00.0"}} {
		a := answers.Default(answers.PVRDMA)
		a.Measure.Load = "incast"
		inv := &backends.Inventory{}
		for i := range 4 {
			host, vm, mac := fmt.Sprintf("esx-%d", i), fmt.Sprintf("vm-%d", i), fmt.Sprintf("0c:42:a1:00:00:0%d", i)
			if wish.MACs != nil {
				wish.MACs[host] = answers.MAC(mac)
			}
			inv.Hosts = append(inv.Hosts, backends.Host{Name: host, State: "connected", NICs: []backends.NIC{
				{Device: "vmnic0", SpeedMbps: 10000, Driver: "ixgben", Roles: []string{"management"}},
				{Device: "vmnic2", MAC: mac, PCI: "0000:3b:00.0", SpeedMbps: 100000, Driver: "nic_driver", RDMADevice: "vmrdma0", RoCEv2: true}}})
			inv.VMs = append(inv.VMs, backends.VM{Name: vm, Host: host})
			a.Hosts.Names = append(a.Hosts.Names, host)
			a.VMs = append(a.VMs, answers.VM{Name: vm, IP: answers.Address{Prefix: netip.MustParsePrefix(fmt.Sprintf("192.168.50.%d/24", i+1))}})
		}
		a.NIC = wish
		if plans := session.LoadPlans(a, inv); len(plans) != 1 || plans[0].PeakGbps != 100 {
			t.Errorf("%s: %+v", name, plans)
		}
	}
}

// The last line of apply -o json contains the total throughput of each receiver of a load, next to the flows.
func TestResultLineHasReceivers(t *testing.T) {
	var b bytes.Buffer
	r := &runner{env: &console.Env{Stdout: &b}}
	flows := []perftest.Measurement{
		{From: "vm-2", To: "vm-1", Load: perftest.LoadIncast, AchievedGbps: 48, ExpectedGbps: 49, Verdict: perftest.VerdictPass},
		{From: "vm-3", To: "vm-1", Load: perftest.LoadIncast, AchievedGbps: 24, ExpectedGbps: 49, Verdict: perftest.VerdictWarn},
	}
	if err := r.writeResult(outcome{Measurements: flows}, 1); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got,
		`"receivers":[{"load":"incast","to":"vm-1","senders":2,"sum_gbps":72,"expected_gbps":98,"fairness":0.9,"lost_packets":0,"verdict":"warn","least":"vm-3"}]`) {
		t.Error(got)
	}
	b.Reset()
	if err := r.writeResult(outcome{}, 0); err != nil || strings.Contains(b.String(), "receivers") {
		t.Errorf("%v %s", err, b.String())
	}
}
