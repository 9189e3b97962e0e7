//go:build bench

package cmd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// sets executes plans of one kind with the real engine and counts the calls: reads for the journal, changes, and reads after the
// changes.
func sets(ctx context.Context, b *board) {
	for _, hosts := range sizes() {
		s := b.serve("--hosts", fmt.Sprint(hosts), "--vms", "1")
		vc := s.dial(ctx, b.t)
		inv, err := vc.Inventory(ctx, backends.Scope{})
		if err != nil {
			b.t.Fatal(err)
		}
		at := fmt.Sprintf("%d hosts", hosts)
		var option, fabric plan.Plan
		dvs := backends.Setting{Target: backends.SwitchRef("RDMA-DVS"), Kind: backends.KindSwitch}
		group := backends.Setting{Target: backends.PortGroupRef("RDMA-PG"), Kind: backends.KindPortGroup}
		fabric.Changes = []plan.Change{
			{Setting: dvs, From: backends.Absent, To: backends.ValueOf(backends.SwitchSpec{
				Datacenter: "DC", Version: "8.0.0", Uplinks: 1, MTU: 9000, Discovery: "lldp listen"})},
			{Setting: group, From: backends.Absent, After: []string{dvs.ID()}, To: backends.ValueOf(backends.PortGroupSpec{
				Switch: "RDMA-DVS", Active: []string{"Uplink 1"}, Binding: "earlyBinding"})},
		}
		for _, h := range inv.Hosts {
			vmk := backends.Setting{Target: backends.HostRef(h.Name), Kind: backends.KindOption, Name: "Net.PVRDMAVmknic"}
			option.Changes = append(option.Changes, plan.Change{Setting: vmk, From: backends.ValueOf(""), To: backends.ValueOf("vmk0")})
			member := backends.Setting{Target: backends.HostRef(h.Name), Kind: backends.KindMember, Name: "RDMA-DVS"}
			fabric.Changes = append(fabric.Changes, plan.Change{
				Setting: member, From: backends.Absent, To: backends.ValueOf(backends.MemberSpec{PNICs: []string{"vmnic2"}}), After: []string{dvs.ID()},
			})
		}
		b.count("SOAP calls to set one option, read and read back", at, carryOut(ctx, b, s, vc, option), hosts+20)
		b.count("SOAP calls for DVS, port group and members", at, carryOut(ctx, b, s, vc, fabric), 40+hosts/50)
	}
}

// carryOut runs a plan and returns the number of calls.
func carryOut(ctx context.Context, b *board, s *site, vc *vsphere.Client, p plan.Plan) int {
	b.t.Helper()
	p.Mode = "bench"
	j, err := journal.Create(b.t.TempDir(), journal.Header{Run: journal.NewRun(time.Now(), p.Mode), Mode: p.Mode, PlanHash: p.Hash()}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer j.Close()
	before := total(s.calls())
	res, err := engine.Run(ctx, engine.Job{Plan: p, Setters: engine.Retry(vc.Setters(), engine.Backoff{}), Brackets: vc.Brackets(),
		Journal: j})
	if err != nil || res.Status != engine.StatusDone {
		b.t.Fatalf("%s, %v: %v", res.Status, err, res.Nodes[0].Err)
	}
	return total(s.calls()) - before
}

// waves reboots hosts in a world with given durations and a simulated clock.
func waves(_ context.Context, b *board) {
	const reboot, evacuate = 10 * time.Minute, 3 * time.Minute
	for _, c := range []struct{ hosts, down int }{{10, 1}, {100, 4}, {101, 8}} {
		took := reboots(b, c.hosts, c.down, reboot, evacuate)
		waves := (c.hosts + c.down - 1) / c.down
		bound := time.Duration(float64(waves)*float64(reboot)*1.15) + time.Duration(waves)*evacuate
		b.count("reboot waves, minutes", fmt.Sprintf("%d hosts, %d down, 10 min a reboot, 3 to evacuate", c.hosts, c.down), int(took.Minutes()),
			int(bound.Minutes()))
	}
}

// rounds checks the schedule of all pairs.
func rounds(_ context.Context, b *board) {
	for _, n := range []int{10, 15, 100, 101} {
		var nodes []perftest.Node
		for i := range n {
			nodes = append(nodes, perftest.Node{VM: fmt.Sprint("vm-", i), Host: fmt.Sprint("esx-", i), Port: "vmnic2", Device: "rocep19s0f1",
				MTU: 4096, LinkMbps: 100000, User: true})
		}
		pairs, err := perftest.Pairs(nodes, "all")
		if err != nil {
			b.t.Fatal(err)
		}
		rounds := perftest.Rounds(pairs)
		busy := 0
		for _, r := range rounds {
			ports := map[string]bool{}
			for _, p := range r {
				for _, node := range []perftest.Node{p.Client, p.Server} {
					if ports[node.Host] {
						b.t.Errorf("%s stands twice in a round", node.Host)
					}
					ports[node.Host] = true
				}
			}
			busy += len(ports)
		}
		at := fmt.Sprintf("%d nodes on %d hosts", n, n)
		b.count("rounds of all pairs", at, len(rounds), n-1+n%2)
		// If the number of nodes is odd, one is idle in every round, whatever the order.
		b.share("idle places, %", at, 100-100*float64(busy)/float64(len(rounds)*(n-n%2)), 10)
	}
}

func reboots(b *board, hosts, down int, reboot, evacuate time.Duration) (took time.Duration) {
	synctest.Test(b.t, func(t *testing.T) {
		w := &rebooting{evacuate: evacuate, reboot: reboot, values: map[string]backends.Value{}}
		p := plan.Plan{Mode: "bench"}
		for i := range hosts {
			h := backends.HostRef(fmt.Sprintf("esx-%03d", i))
			around := plan.Bracket{Kind: backends.BracketReboot, Target: h, Why: "a bench"}
			p.Brackets = append(p.Brackets, around)
			p.Changes = append(p.Changes, plan.Change{
				Setting: backends.Setting{Target: h, Kind: backends.KindFirmware, Name: "SRIOV_EN"}, From: backends.Absent, To: backends.ValueOf(1),
				Why: "a bench", Within: []string{around.ID()},
			})
		}
		j, err := journal.Create(t.TempDir(), journal.Header{Run: journal.NewRun(time.Now(), p.Mode), Mode: p.Mode, PlanHash: p.Hash()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		res, err := engine.Run(t.Context(), engine.Job{
			Plan: p, Setters: map[backends.Kind]backends.Setter{backends.KindFirmware: w},
			Brackets: map[backends.BracketKind]backends.Bracket{backends.BracketReboot: w}, Journal: j, Limits: engine.Limits{HostsDown: down},
		})
		if err != nil || res.Status != engine.StatusDone {
			t.Fatalf("%s, %v", res.Status, err)
		}
		if w.most > down {
			t.Errorf("%d hosts down at once, bound %d", w.most, down)
		}
		took = time.Since(begin)
		_ = j.Close() // closed inside the bubble
	})
	return took
}

// rebooting keeps settings of hosts in memory, and counts the hosts that are down: each for the time to evacuate and to reboot it.
type rebooting struct {
	evacuate, reboot time.Duration

	mu         sync.Mutex
	values     map[string]backends.Value
	down, most int
}

func (w *rebooting) Read(_ context.Context, s backends.Setting) (backends.Value, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.values[s.ID()], nil
}

func (w *rebooting) Set(_ context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values[s.ID()] = to
	return nil
}

func (w *rebooting) State(context.Context, backends.Ref) (backends.Value, error) {
	return backends.ValueOf("in service"), nil
}

func (w *rebooting) Open(ctx context.Context, _ backends.Ref, _ backends.Progress) error {
	backends.Sleep(ctx, w.evacuate)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down++
	w.most = max(w.most, w.down)
	return ctx.Err()
}

func (w *rebooting) Close(ctx context.Context, _ backends.Ref, _ backends.Value, _ backends.Progress) error {
	backends.Sleep(ctx, w.reboot)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down--
	return ctx.Err()
}

func (s *site) tls() *tls.Config {
	pem, err := os.ReadFile(s.value("GOVC_TLS_CA_CERTS"))
	if err != nil {
		s.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}
