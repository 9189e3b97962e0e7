package perftest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
)

// Tests of applications. Those of MPI are the OSU micro-benchmarks, or with the prefix mpi_ the program that replaces them
// (assets/programs/mpi.c).
const (
	mpiLatency   = "latency"
	mpiBandwidth = "bw"
	mpiAllReduce = "allreduce"

	AllReduce = "all_reduce_perf" // nccl-tests
	AllGather = "all_gather_perf"
)

// An Application describes how MPI or NCCL is measured between guests.
type Application struct {
	NCCL    bool     // programs of nccl-tests; otherwise the benchmarks of MPI
	Dir     string   // where nccl-tests was built with MPI=1; "": the PATH
	PerNode int      // ranks in each guest; 0: one
	Network string   // of the RDMA addresses, 192.168.50.0/24: MPI connects its daemons through it
	Env     []string // NAME=VALUE, for every rank
}

// A team is the prepared guests of one run.
type team struct {
	nodes []Node
	dir   string            // the same in each guest
	bin   map[string]string // directory of mpirun, by VM
	bench map[string]string // program by test, on the first guest
	own   bool              // own means that it is the program of this project
}

// Applications measures an application between the two ends of each pair, one pair after the other, and over all guests if there
// are more than two. base are the RDMA measurements that the figures are compared with.
func (r *Runner) Applications(ctx context.Context, pairs []Pair, app Application, base []Measurement,
	done func(Measurement)) ([]Measurement, error) {
	var all []Measurement
	var nodes []Node
	add := func(list []Measurement) {
		for _, m := range list {
			all = append(all, m)
			done(m)
		}
	}
	for _, p := range pairs {
		for _, n := range []Node{p.Client, p.Server} {
			if !slices.ContainsFunc(nodes, func(o Node) bool { return o.VM == n.VM }) {
				nodes = append(nodes, n)
			}
		}
		add(r.runTeam(ctx, []Node{p.Client, p.Server}, app, app.pairTests(), base))
		if err := ctx.Err(); err != nil {
			return all, err
		}
	}
	if len(nodes) > 2 {
		add(r.runTeam(ctx, nodes, app, app.allTests(), base))
	}
	return all, ctx.Err()
}

func (a Application) pairTests() []string {
	if a.NCCL {
		return []string{AllReduce, AllGather}
	}
	return []string{mpiLatency, mpiBandwidth, mpiAllReduce}
}

func (a Application) allTests() []string {
	if a.NCCL {
		return a.pairTests()
	}
	return []string{mpiAllReduce}
}

// runTeam prepares the guests, runs the tests one after the other, and cleans up.
func (r *Runner) runTeam(ctx context.Context, nodes []Node, app Application, tests []string, base []Measurement) []Measurement {
	t := team{nodes: nodes, dir: "/tmp/rdma-setup-mpi-" + strings.ToLower(rand.Text()[:16]), bin: map[string]string{},
		bench: map[string]string{}}
	defer r.clean(ctx, t)
	failed := r.prepare(ctx, &t, app)
	var out []Measurement
	for _, test := range tests {
		if ctx.Err() != nil {
			break
		}
		m := r.blankTeam(t, app, test)
		text, err := "", failed
		if err == nil {
			text, err = r.mpirun(ctx, t, app, test, &m)
		}
		if ctx.Err() != nil {
			break // an interrupted test has no result
		}
		m.readApplication(app, text, err)
		if failed != nil { // the failure proves nothing about RDMA
			m.Verdict = VerdictUnknown
		}
		if m.Error == "" {
			m.judgeApplication(app, r.Mode, base, nodes)
		}
		out = append(out, m)
	}
	return out
}

func (r *Runner) blankTeam(t team, app Application, test string) Measurement {
	name := test
	if !app.NCCL {
		name = map[string]string{mpiLatency: "osu_lat", mpiBandwidth: "osu_bw", mpiAllReduce: "osu_allreduce_lat"}[test]
		if t.own {
			name = "mpi" + strings.TrimPrefix(name, "osu")
		}
	}
	m := r.blank(Pair{t.nodes[0], t.nodes[len(t.nodes)-1]}, name)
	if len(t.nodes) > 2 {
		m.To, m.ToHost = fmt.Sprintf("all %d guests", len(t.nodes)), ""
		for _, n := range t.nodes {
			m.Members = append(m.Members, n.VM)
		}
	}
	return m
}

// command returns a command line for the guest of a node, as root if the login user may not lock enough memory.
func (n Node) command(line string) Command {
	if !n.User {
		line = "ulimit -l unlimited; " + line
	}
	return Command{Line: line, Sudo: !n.User}
}

func scriptLine(name string, words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return "set -- " + strings.Join(quoted, " ") + "\n" + assets.Script(name)
}

// prepare finds MPI and the benchmarks in every guest.
func (r *Runner) prepare(ctx context.Context, t *team, app Application) error {
	source := assets.Program("mpi.c")
	if app.NCCL {
		source = ""
	}
	for i, n := range t.nodes {
		if n.Device == "" {
			why, hint := n.noDevice()
			return hinted{errors.New(why), hint}
		}
		out, err := r.Shell.Exec(ctx, n.VM, n.command(scriptLine("mpi-prepare.sh", t.dir, source)))
		if err == nil && out.Exit != 0 {
			err = errors.New(cmp.Or(lastLine(out.Stderr), fmt.Sprintf("status %d", out.Exit)))
			if out.Exit == noMPI || out.Exit == noCompiler {
				err = hinted{err, "install Open MPI with UCX in all guests (Debian: openmpi-bin libopenmpi-dev gcc; EL: openmpi-devel gcc)"}
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", n.VM, err)
		}
		for line := range strings.Lines(out.Stdout) {
			switch w := strings.Fields(line); {
			case len(w) == 2 && w[0] == "mpi":
				t.bin[n.VM] = w[1]
			case len(w) == 4 && w[0] == "bench" && i == 0:
				t.own, t.bench[w[1]] = w[2] == "own", w[3]
			case len(w) == 4 && w[0] == "bench" && w[3] != t.bench[w[1]]:
				return fmt.Errorf("the MPI benchmarks are in %s on %s and in %s on %s: install the same ones on both", t.bench[w[1]], t.nodes[0].VM,
					w[3], n.VM)
			}
		}
		if t.bin[n.VM] == "" {
			return fmt.Errorf("%s: mpirun was not found", n.VM)
		}
	}
	return nil
}

// clean ends an abandoned mpirun, which may survive its connection, and removes what prepare created, also after an interruption.
func (r *Runner) clean(ctx context.Context, t team) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer stop()
	var wg sync.WaitGroup
	for _, n := range t.nodes {
		wg.Go(func() {
			_, _ = r.Shell.Exec(ctx, n.VM, n.command("kill $(cat "+quote(t.dir+"/running")+" 2>/dev/null) 2>/dev/null; rm -rf -- "+quote(t.dir)))
		})
	}
	wg.Wait()
}

// words returns the arguments of mpirun.
func (t team) words(app Application, test string) []string {
	per := max(1, app.PerNode)
	var hosts, devices []string
	for _, n := range t.nodes {
		hosts = append(hosts, fmt.Sprintf("%s:%d", n.IP, per))
		if d := n.Device + ":1"; !slices.Contains(devices, d) {
			devices = append(devices, d)
		}
	}
	ranks := per * len(t.nodes)
	if test == mpiLatency || test == mpiBandwidth {
		ranks = 2 // the benchmarks between two ranks accept no more
		for i, n := range t.nodes {
			hosts[i] = n.IP + ":1"
		}
	}
	w := []string{"-np", strconv.Itoa(ranks), "--host", strings.Join(hosts, ","), "--mca", "plm_rsh_no_tree_spawn", "1", "--mca",
		"oob_tcp_if_include", app.Network,
		"--mca", "btl_tcp_if_include", app.Network, "--mca", "btl", "^openib"}
	if !app.NCCL {
		// Without tcp UCX fails if RDMA cannot be used, instead of silently falling back.
		w = append(w, "--mca", "pml", "ucx", "-x", "UCX_TLS=rc,ud,sm,self", "-x", "UCX_NET_DEVICES="+strings.Join(devices, ","))
	} else {
		w = append(w, "--mca", "pml", "ob1")
	}
	for _, e := range app.Env {
		w = append(w, "-x", e)
	}
	switch {
	case app.NCCL:
		return append(w, path.Join(app.Dir, test), "-b", "8", "-e", "1G", "-f", "4", "-g", "1")
	case t.own:
		what := map[string][]string{mpiLatency: {"latency", "65536", "200"}, mpiBandwidth: {"bandwidth", "1048576", "100"},
			mpiAllReduce: {"allreduce", "65536", "100"}}[test]
		return append(append(w, t.bench[test]), what...)
	}
	return append(w, t.bench[test])
}
