package generate_test

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

func osu(n int) generate.OSU {
	s := generate.OSU{Device: "mlx5_1", Class: 106}
	for i := range n {
		s.Hosts = append(s.Hosts, netip.AddrFrom4([4]byte{192, 168, 50, byte(11 + i)}))
	}
	return s
}

func TestCounts(t *testing.T) {
	for _, tt := range []struct {
		vms  int
		want []int
	}{{2, []int{2}}, {3, []int{2}}, {5, []int{2, 4}}, {6, []int{2, 4, 6}}, {16, []int{2, 4, 8, 12, 16}}, {19, []int{2, 4, 8, 12, 16, 18}}} {
		if got := osu(tt.vms).Counts(); !slices.Equal(got, tt.want) {
			t.Errorf("%d VMs (RoCE SR-IOV Setup and Performance Study: 2, 4, 8, 12, 16): %v, want %v", tt.vms, got, tt.want)
		}
	}
}

// bench runs the script with an mpirun that prints as OSU does; each further run is slower by one.
func bench(t *testing.T, s generate.OSU, baseline string, bandwidth, latency string) (stdout, stderr, log string, code int) {
	t.Helper()
	dir := t.TempDir()
	script, err := s.Script(origin)
	if err != nil {
		t.Fatal(err)
	}
	fake := map[string]string{
		"mpirun": `echo "$*" >>"$W/log"; n=$(grep -c . "$W/log")
case "$*" in *osu_mbw_mr*) printf '# OSU MPI Multiple Bandwidth / Message Rate Test\n# Size                  MB/s        Messages/s\n8192 %s 1\n1048576 12000.00 2\n' "$BW" ;;
*) printf '# OSU MPI All-to-All Personalized Exchange Latency Test\n# Size       Avg Latency(us)\n8192 %s\n' "$LAT" ;; esac`,
		"mpitests-osu_mbw_mr": ":", "mpitests-osu_alltoall": ":",
	}
	for name, body := range fake {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-s", "--"}
	if baseline != "" {
		file := filepath.Join(dir, "baseline.txt")
		if err := os.WriteFile(file, []byte(baseline), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	var out, errs strings.Builder
	cmd := exec.Command("/bin/sh", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(script), &out, &errs
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "W=" + dir, "BW=" + bandwidth, "LAT=" + latency}
	_ = cmd.Run()
	b, _ := os.ReadFile(filepath.Join(dir, "log"))
	return out.String(), errs.String(), string(b), cmd.ProcessState.ExitCode()
}

func TestOSUMeasures(t *testing.T) {
	out, errs, log, code := bench(t, osu(4), "", "11000.50", "20.25")
	want := "osu_mbw_mr 2 8192 11000.50\nosu_mbw_mr 2 1048576 12000.00\nosu_mbw_mr 4 8192 11000.50\nosu_mbw_mr 4 1048576 " +
		"12000.00\nosu_alltoall 2 8192 20.25\nosu_alltoall 4 8192 20.25\n"
	if code != 0 || out != want {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	if n := strings.Count(log, "\n"); n != 2*2*5 {
		t.Errorf("%d runs, want five of each (RoCE SR-IOV Setup and Performance Study)", n)
	}
	if first, _, _ := strings.Cut(log, "\n"); !strings.Contains(first,
		"-np 2 --host 192.168.50.11:1,192.168.50.12:1 --mca pml ucx -x UCX_NET_DEVICES=mlx5_1:1 -x UCX_IB_TRAFFIC_CLASS=106") {
		t.Errorf("%q", first)
	}
}

// RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022): virtualisation may cost up to 8.3 % compared with bare
// metal.
func TestOSUJudges(t *testing.T) {
	const base = "osu_mbw_mr 2 8192 10000\nosu_alltoall 2 8192 10.0\n"
	for _, tt := range []struct {
		name, bandwidth, latency string
		baseline                 string
		code                     int
		says                     string
	}{
		{"better", "11000", "9", base, 0, "2 of 2 values within 8.3 %"},
		{"just fine", "9171", "10.82", base, 0, "2 of 2"},
		{"bandwidth falls short", "9169", "10", base, 1, "FAIL osu_mbw_mr 2 8192: 8.3 % worse"},
		{"latency is too high", "10000", "10.9", base, 1, "FAIL osu_alltoall 2 8192: 9.0 % worse"},
		{"a baseline of something else", "10000", "10", "osu_bw 2 1 5\n", 3, "UNKNOWN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errs, _, code := bench(t, osu(2), tt.baseline, tt.bandwidth, tt.latency)
			if code != tt.code || !strings.Contains(errs, tt.says) {
				t.Errorf("exit %d\n%s", code, errs)
			}
		})
	}
}

func TestOSURefuses(t *testing.T) {
	for name, change := range map[string]func(*generate.OSU){
		"one guest":         func(s *generate.OSU) { s.Hosts = s.Hosts[:1] },
		"a guest twice":     func(s *generate.OSU) { s.Hosts[1] = s.Hosts[0] },
		"IPv6":              func(s *generate.OSU) { s.Hosts[0] = netip.MustParseAddr("fd00::1") },
		"a device of shell": func(s *generate.OSU) { s.Device = "x;reboot" },
	} {
		s := osu(2)
		change(&s)
		if text, err := s.Script(origin); err == nil || text != "" {
			t.Errorf("%s is taken", name)
		}
	}
	o := origin
	o.From = []string{"x\nreboot"}
	text, err := osu(2).Script(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), ""); err != nil {
		t.Error(err)
	}
	if strings.Contains(text, "\nreboot") {
		t.Error("a name got out of its comment")
	}
}
