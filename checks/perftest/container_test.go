package perftest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// PVRDMA and vSphere Bitfusion (VMware, 2021), Using PVRDMA in an NGC Container: the same tests run from containers, with the flags
// of the guide, without a memory limit, and as root whatever limits the account has.
func TestContainersAreMeasuredBesideTheGuests(t *testing.T) {
	run := func(image, fail string) (*guests, []perftest.Measurement) {
		g := &guests{gbps: 97, one: 1, us: 2, fail: fail}
		pairs := pairOf(100_000)
		pairs[0].Client.Engine, pairs[0].Client.Image = "podman", image
		pairs[0].Server.Engine, pairs[0].Server.Image = "docker", "rdma:1"
		r := perftest.Runner{Shell: g, Mode: "sriov", Bandwidth: true, Latency: true}
		all, err := r.Measure(context.Background(), pairs)
		if err != nil {
			t.Fatal(err)
		}
		return g, all
	}
	g, all := run("rdma:1", "")
	var got []string
	for _, m := range all {
		got = append(got, m.Test)
		if inside := strings.HasSuffix(m.Test, " in containers"); m.Verdict != perftest.VerdictPass || (m.Image == "rdma:1") != inside {
			t.Errorf("%+v", m)
		}
	}
	if want := []string{perftest.SendBandwidth, perftest.SendLatency, perftest.SendBandwidthContainer,
		perftest.SendLatencyContainer}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	want := "timeout --foreground -k 5 190 podman run --rm --net=host --ipc=host --pid=host --privileged --cap-add=IPC_LOCK --ulimit " +
		"memlock=-1 --entrypoint= 'rdma:1' stdbuf -oL timeout --foreground -k 5 180 ib_send_bw -d 'mlx5_0' "
	if !slices.ContainsFunc(g.lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
		t.Errorf("%q", g.lines)
	}
	if _, all := run("", ""); len(all) != 2 {
		t.Errorf("one end without an image: %d tests", len(all))
	}
	_, all = run("rdma:1", "podman run")
	if m := all[2]; m.Verdict != perftest.VerdictFail || !strings.Contains(m.Hint, "memlock") || all[0].Verdict != perftest.VerdictPass {
		t.Errorf("%+v", m)
	}
}
