package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	dvs = "RDMA-DVS"
	pg  = "RDMA-PG"
)

func setting(t backends.Ref, kind backends.Kind, name string) backends.Setting {
	return backends.Setting{Target: t, Kind: kind, Name: name}
}

var testTime = time.Date(2026, 11, 20, 18, 44, 10, 0, time.UTC)

func val(v any) backends.Value { return backends.ValueOf(v) }

var (
	switchID = setting(backends.SwitchRef(dvs), backends.KindSwitch, "").ID()
	groupID  = setting(backends.PortGroupRef(pg), backends.KindPortGroup, "").ID()
)

// fabric is a small fabric with everything that a run can encounter: a switch and its members, options, a firmware value that needs
// a reboot, VMs that must be off, one that was off before, files, and a value that is known only later.
func fabric() (*World, []Wish) {
	w := NewWorld()
	h1, h2 := backends.HostRef("esx-01"), backends.HostRef("esx-02")
	vm1, vm2 := backends.VMRef("vm-01"), backends.VMRef("vm-02")
	g1 := backends.GuestRef("vm-01")
	w.SetPower(vm1, "on")
	w.SetPower(vm2, "off")
	w.Put(setting(h2, backends.KindOption, "Net.PVRDMAVmknic"), val("vmk1"))
	w.Put(setting(h1, backends.KindFirewall, "pvrdma"), val(false))
	w.Put(setting(h2, backends.KindFirewall, "pvrdma"), val(false))
	persist := setting(g1, backends.KindPersist, "")
	w.PutFile(persist, "br_ netfilter")
	address := setting(g1, backends.KindAddress, pg)
	w.PutFile(address, "")

	var wishes []Wish
	add := func(wish Wish) string {
		wishes = append(wishes, wish)
		return wish.ID()
	}
	add(Wish{Setting: setting(backends.SwitchRef(dvs), backends.KindSwitch, ""), To: val(map[string]int{"mtu": 9000})})
	add(Wish{Setting: setting(backends.PortGroupRef(pg), backends.KindPortGroup, ""), To: val("vlan 7"), After: []string{switchID}})
	var members []string
	for _, h := range []backends.Ref{h1, h2} {
		members = append(members,
			add(Wish{Setting: setting(h, backends.KindMember, dvs), To: val([]string{"vmnic2"}), After: []string{switchID}}))
		add(Wish{Setting: setting(h, backends.KindOption, "Net.PVRDMAVmknic"), To: val("vmk0")})
		add(Wish{Setting: setting(h, backends.KindFirewall, "pvrdma"), To: val(true)})
	}
	add(Wish{
		Setting: setting(h1, KindFirmware, "SRIOV_EN"), To: val(1),
		Within: []backends.BracketKind{backends.BracketReboot},
	})
	var adapter1 string
	for _, vm := range []backends.Ref{vm1, vm2} {
		power := []backends.BracketKind{backends.BracketVMPower}
		add(Wish{Setting: setting(vm, backends.KindMemory, ""), To: val("locked"), Within: power})
		id := add(Wish{Setting: setting(vm, backends.KindAdapter, pg), To: val("pvrdma"), Within: power,
			After: append([]string{groupID}, members...)})
		if vm == vm1 {
			adapter1 = id
		}
	}
	on := vm1.String() + "/" + string(backends.BracketVMPower)
	p := add(Wish{Setting: persist, To: val("br_netfilter,vmw_pvrdma"), After: []string{on}})
	add(Wish{Setting: setting(g1, backends.KindModules, "rdma"), To: val("loaded"), After: []string{on, p}})
	add(Wish{Setting: address, To: val("192.168.50.11/24"), After: []string{on, adapter1}, Until: adapter1})
	return w, wishes
}

const (
	vcenter = "50a1"
	answers = "mode: test\nhosts: [esx-01, esx-02]\n"
)

func header(p *plan.Plan) journal.Header {
	ceiling, err := json.Marshal(p.Ceiling())
	if err != nil {
		panic(err)
	}
	return journal.Header{VCenter: vcenter, URL: "https://vc.example/sdk", Mode: "test", Answers: answers, PlanHash: p.Hash(),
		Ceiling: ceiling}
}

// job returns a job of the wishes; the caller closes the journal.
func job(w *World, wishes []Wish, j *journal.Journal) engine.Job {
	return engine.Job{
		Plan: *w.Plan(wishes), Setters: w.Setters(), Brackets: w.Brackets(), Journal: j,
		Replan: w.Replanner(wishes), VCenter: vcenter, Answers: answers,
	}
}

// unwinding returns the job of a rollback.
func unwinding(w *World, wishes []Wish, j *journal.Journal) engine.Job {
	job := job(w, wishes, j)
	job.Plan = plan.Plan{}
	job.Replan = w.Unwinder(wishes, func() []plan.Prior { return engine.Priors(j.State()) })
	return job
}

func create(t *testing.T, root string, p *plan.Plan, opts ...journal.Option) *journal.Journal {
	t.Helper()
	j, err := journal.Create(root, header(p), []byte("{}"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func same(t *testing.T, what string, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func states(r engine.Result) map[string]string {
	out := map[string]string{}
	for _, n := range r.Nodes {
		out[n.ID] = string(n.State)
	}
	return out
}

func node(t *testing.T, r engine.Result, id string) engine.NodeResult {
	t.Helper()
	for _, n := range r.Nodes {
		if n.ID == id {
			return n
		}
	}
	t.Fatalf("no node %q in %v", id, states(r))
	return engine.NodeResult{}
}
