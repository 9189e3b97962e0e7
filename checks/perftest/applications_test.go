package perftest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// cluster are guests with Open MPI: mpirun requests its daemon in each other guest, and prints its table when all have started.
type cluster struct {
	own     bool   // no OSU benchmarks: the program builds its own
	missing string // VM without Open MPI
	ask     string // what mpirun requests instead of its daemon
	texts   map[string]string
	status  int // of mpirun

	mu      sync.Mutex
	daemons []string // "VM: line"
	made    map[string]int
	mpirun  []string
}

func (c *cluster) Exec(ctx context.Context, vm string, cmd perftest.Command) (perftest.Output, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]int{}
	}
	switch {
	case strings.Contains(cmd.Line, "rm -rf -- '/tmp/rdma-setup-mpi-"):
		c.made[vm]--
	case strings.Contains(cmd.Line, "mkdir -m 700"):
		c.made[vm]++
		if vm == c.missing {
			return perftest.Output{Stderr: "there is no mpirun of Open MPI\n", Exit: 41}, nil
		}
		word := "osu /usr/bin/osu_"
		if c.own {
			word = "own /tmp/x/mpi_"
		}
		return perftest.Output{Stdout: fmt.Sprintf("mpi /usr/bin\nbench latency %slatency\nbench bw %[1]sbw\nbench allreduce %[1]sallreduce\n",
			word)}, nil
	case strings.HasPrefix(cmd.Line, "set -- "):
		c.mpirun = append(c.mpirun, strings.SplitN(cmd.Line, "\n", 2)[0])
		ask := c.ask
		if ask == "" {
			ask = `192.168.50.12  orted --daemonize -mca ess "env" -mca orte_hnp_uri "37.0;tcp://192.168.50.11:35623" --tree-spawn`
		}
		before := len(c.daemons)
		c.mu.Unlock()
		cmd.OnLine("@launch " + ask)
		for began := false; !began && c.ask == ""; {
			c.mu.Lock()
			began = len(c.daemons) > before
			c.mu.Unlock()
		}
		c.mu.Lock()
		for _, test := range []string{"latency", "allreduce", "all_reduce_perf", "all_gather_perf", "bw"} {
			if strings.Contains(c.mpirun[len(c.mpirun)-1], test+"'") {
				return perftest.Output{Stdout: c.texts[test] + "@launch " + ask + "\n", Exit: c.status}, nil
			}
		}
	case strings.Contains(cmd.Line, "orted"):
		c.daemons = append(c.daemons, vm+": "+cmd.Line)
	default:
		return perftest.Output{}, fmt.Errorf("%s: %s", vm, cmd.Line)
	}
	return perftest.Output{}, nil
}

func node(i int) perftest.Node {
	return perftest.Node{VM: fmt.Sprintf("vm-%02d", i), Host: fmt.Sprintf("esx-%02d", i), IP: fmt.Sprintf("192.168.50.1%d", i),
		Device: "mlx5_0", User: true}
}

func rdma(gbps, us float64) []perftest.Measurement {
	return []perftest.Measurement{{From: "vm-01", To: "vm-02", Test: perftest.SendBandwidth, AchievedGbps: gbps},
		{From: "vm-01", To: "vm-02", Test: perftest.SendLatency, AchievedUs: us}}
}

func osu(latency, mbps, allreduce float64) map[string]string {
	return map[string]string{
		"latency":   fmt.Sprintf("# Size          Latency (us)\n1      %.2f\n", latency),
		"bw":        fmt.Sprintf("# Size      Bandwidth (MB/s)\n1048576      %.2f\n", mbps),
		"allreduce": fmt.Sprintf("# Size       Avg Latency(us)\n4     %.2f\n", allreduce),
	}
}

func TestMPIIsComparedWithRDMA(t *testing.T) {
	for name, test := range map[string]struct {
		c    *cluster
		base []perftest.Measurement
		want string
		says string
	}{
		"at the rate of RDMA": {&cluster{texts: osu(2.4, 11500, 5)}, rdma(96, 2), "osu_lat pass, osu_bw pass, osu_allreduce_lat pass", ""},
		"the program of ours": {&cluster{own: true, texts: osu(2.4, 11500, 5)}, rdma(96, 2),
			"mpi_lat pass, mpi_bw pass, mpi_allreduce_lat pass", ""},
		"a fifth is lost": {&cluster{texts: osu(2.4, 9600, 5)}, rdma(96, 2), "osu_lat pass, osu_bw warn, osu_allreduce_lat pass",
			"MPI reaches 80 % of RDMA"},
		"a quarter": {&cluster{texts: osu(30, 3000, 60)}, rdma(96, 2), "osu_lat fail, osu_bw fail, osu_allreduce_lat fail",
			"MPI reaches 25 % of RDMA"},
		"nothing to hold against": {&cluster{texts: osu(2.4, 11500, 5)}, nil, "osu_lat unknown, osu_bw unknown, osu_allreduce_lat unknown",
			"RDMA was not measured"},
		"no result": {&cluster{texts: map[string]string{}}, rdma(96, 2), "osu_lat fail, osu_bw fail, osu_allreduce_lat fail",
			"printed no result"},
		"no Open MPI in one": {&cluster{missing: "vm-02"}, rdma(96, 2), "osu_lat unknown, osu_bw unknown, osu_allreduce_lat unknown",
			"vm-02: there is no mpirun"},
		"mpirun asks for a shell": {&cluster{ask: "192.168.50.12 sh -c id", texts: osu(1, 1, 1)}, rdma(96, 2),
			"osu_lat fail, osu_bw fail, osu_allreduce_lat fail", "something other than its daemon"},
		"mpirun asks for more": {&cluster{ask: "192.168.50.12 orted -mca a b; id", texts: osu(1, 1, 1)}, rdma(96, 2),
			"osu_lat fail, osu_bw fail, osu_allreduce_lat fail", "something other than its daemon"},
		"mpirun asks for a guest": {&cluster{ask: "10.0.0.1 orted -mca a b", texts: osu(1, 1, 1)}, rdma(96, 2),
			"osu_lat fail, osu_bw fail, osu_allreduce_lat fail", "something other than its daemon"},
		"mpirun asks to substitute": {&cluster{ask: "192.168.50.12 orted \"$(id)\"", texts: osu(1, 1, 1)}, rdma(96, 2),
			"osu_lat fail, osu_bw fail, osu_allreduce_lat fail", "something other than its daemon"},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.c
			r := perftest.Runner{Shell: c, Mode: "sriov"}
			var told int
			all, err := r.Applications(t.Context(), []perftest.Pair{{Client: node(1), Server: node(2)}},
				perftest.Application{Network: "192.168.50.0/24", Env: []string{"UCX_IB_TRAFFIC_CLASS=106"}}, test.base,
				func(perftest.Measurement) { told++ })
			var got, said []string
			for _, m := range all {
				got = append(got, m.Test+" "+string(m.Verdict))
				said = append(said, m.Hint, m.Error)
			}
			if err != nil || strings.Join(got, ", ") != test.want || !strings.Contains(strings.Join(said, "\n"), test.says) || told != len(all) {
				t.Errorf("%v: %v, told %d\n%s", err, got, told, strings.Join(said, "\n"))
			}
			for vm, n := range c.made {
				if n != 0 {
					t.Errorf("%s: %d directories are left", vm, n)
				}
			}
			if c.ask != "" && len(c.daemons) > 0 {
				t.Errorf("started %v", c.daemons)
			}
			if c.missing == "" && c.ask == "" &&
				(len(c.mpirun) != 3 || !strings.Contains(c.mpirun[0], "'UCX_IB_TRAFFIC_CLASS=106'") ||
					!strings.Contains(c.mpirun[0], "'192.168.50.11:1,192.168.50.12:1'") ||
					len(c.daemons) != 3 || !strings.HasPrefix(c.daemons[0], "vm-02: PATH='/usr/bin':$PATH; export PATH; exec 'orted' '-mca' "+
					"'ess' 'env' ")) {
				t.Errorf("%q\n%q", c.mpirun, c.daemons)
			}
		})
	}
}

// TestMPIHintIsOfItsCause: the hint is to install Open MPI only if it is missing.
func TestMPIHintIsOfItsCause(t *testing.T) {
	for name, test := range map[string]struct {
		c    *cluster
		want string
	}{
		"no Open MPI": {&cluster{missing: "vm-02"}, "install Open MPI"},
		"no end":      {&cluster{status: 124}, "open TCP between all guests on the RDMA network, 192.168.50.0/24"},
		"no UCX": {&cluster{status: 1,
			texts: map[string]string{"latency": "No components were able to be opened in the pml framework.\n"}}, "check with ucx_info -d"},
		"something else":           {&cluster{status: 1, texts: map[string]string{"latency": "out of memory\n"}}, ""},
		"more than a daemon asked": {&cluster{ask: "192.168.50.12 sh -c id"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := perftest.Runner{Shell: test.c, Mode: "sriov"}
			all, err := r.Applications(t.Context(), []perftest.Pair{{Client: node(1), Server: node(2)}},
				perftest.Application{Network: "192.168.50.0/24"}, nil, func(perftest.Measurement) {})
			if err != nil || len(all) != 3 || all[0].Error == "" || !strings.HasPrefix(all[0].Hint, test.want) ||
				(all[0].Hint == "") != (test.want == "") {
				t.Errorf("%v: %+v", err, all)
			}
		})
	}
}

func TestAllReduceRunsOverAllGuests(t *testing.T) {
	c := &cluster{texts: osu(2.4, 11500, 5)}
	r := perftest.Runner{Shell: c, Mode: "sriov"}
	all, err := r.Applications(t.Context(), []perftest.Pair{{Client: node(1), Server: node(2)}, {Client: node(2), Server: node(3)}},
		perftest.Application{Network: "192.168.50.0/24", PerNode: 4}, rdma(96, 2), func(perftest.Measurement) {})
	if err != nil || len(all) != 7 {
		t.Fatalf("%v: %d measurements", err, len(all))
	}
	last := all[6]
	// 12 ranks synchronize in four steps of 2 us each.
	if last.To != "all 3 guests" || !slices.Equal(last.Members, []string{"vm-01", "vm-02", "vm-03"}) || last.ExpectedUs != 8 ||
		last.Verdict != perftest.VerdictPass || !strings.Contains(last.Command, "-np 12 ") {
		t.Errorf("%+v", last)
	}
}

func TestNCCLIsJudgedByItsLog(t *testing.T) {
	const (
		found = "vm-01:9:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB ens160:10.0.0.11<0>\nvm-01:9:9 [0] NCCL INFO Using " +
			"network IB\n"
		none   = "vm-01:9:9 [0] NCCL INFO NET/IB : No device found.\n"
		socket = "vm-01:9:9 [0] NCCL INFO NET/Socket : Using [0]ens160:10.0.0.11<0>\nvm-01:9:9 [0] NCCL INFO Using network Socket\nvm-01:9:9 " +
			"[0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
		direct = "vm-01:9:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
		staged = "vm-01:9:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"
		head   = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
		fast   = head + "  1073741824     268435456     float     sum      -1    93120   11.53   11.53      0    93214   11.52   11.52      0\n"
		slow   = head + "  1073741824     268435456     float     sum      -1    93120   3.00   3.00      0    93214   3.00   3.00      0\n"
		wrong  = head + "  1073741824     268435456     float     sum      -1    93120   11.53   11.53      5    93214   11.52   11.52      0\n"
	)
	for name, test := range map[string]struct {
		text, mode string
		verdict    perftest.Verdict
		transport  string
		says       string
	}{
		"GPUDirect RDMA at full rate":         {found + direct + fast, "gpudirect", perftest.VerdictPass, "NET/IB/GDRDMA", ""},
		"through host memory, gpudirect":      {found + staged + fast, "gpudirect", perftest.VerdictWarn, "NET/IB", "through host memory"},
		"through host memory, as it must":     {found + staged + fast, "sriov", perftest.VerdictPass, "NET/IB", ""},
		"a quarter of RDMA":                   {found + direct + slow, "gpudirect", perftest.VerdictFail, "NET/IB/GDRDMA", "25 % of RDMA"},
		"no device: sockets, fast enough":     {none + socket + fast, "gpudirect", perftest.VerdictFail, "NET/Socket", "found no device"},
		"sockets by choice, fast enough":      {socket + fast, "gpudirect", perftest.VerdictFail, "NET/Socket", "NCCL_IB_DISABLE"},
		"no log":                              {fast, "gpudirect", perftest.VerdictUnknown, "", "does not show its transport"},
		"a line of failure is no NET/IB":      {none + fast, "gpudirect", perftest.VerdictUnknown, "", ""},
		"wrong values at full rate over RDMA": {found + direct + wrong, "gpudirect", perftest.VerdictFail, "NET/IB/GDRDMA", "computed wrongly"},
		"a warning and no table": {
			found + "vm-01:9:9 [0] transport/net_ib.cc:1 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument\n", "gpudirect",
			perftest.VerdictFail, "NET/IB", "ibv_modify_qp"},
		"a warning, and a sound table": {found + direct +
			"vm-01:9:9 [0] transport/net_ib.cc:1 NCCL WARN NET/IB : mlx5_1:1 Got async event : GID table change\n" + fast, "gpudirect",
			perftest.VerdictPass, "NET/IB/GDRDMA", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{texts: map[string]string{"all_reduce_perf": test.text, "all_gather_perf": test.text}}
			r := perftest.Runner{Shell: c, Mode: test.mode}
			all, err := r.Applications(t.Context(), []perftest.Pair{{Client: node(1), Server: node(2)}},
				perftest.Application{NCCL: true, Network: "192.168.50.0/24"}, rdma(96, 2), func(perftest.Measurement) {})
			if err != nil || len(all) != 2 || all[0].Test != "all_reduce_perf" || all[1].Test != "all_gather_perf" {
				t.Fatalf("%v: %+v", err, all)
			}
			m := all[0]
			if m.Verdict != test.verdict || m.Transport != test.transport || !strings.Contains(m.Hint+m.Error, test.says) {
				t.Errorf("%s by %q: %s %s", m.Verdict, m.Transport, m.Hint, m.Error)
			}
		})
	}
}
