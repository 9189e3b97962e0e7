package guest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

const (
	ngc = "nvcr.io/nvidia/tensorrt:20.12-py3"
	// What the generator of Dockerfiles does, in short.
	rebuilt = `FROM nvcr.io/nvidia/tensorrt:20.12-py3
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN apt-get purge -y ibverbs-providers libibverbs1 \
# in between
 && apt-get update && apt-get install -y rdma-core ibverbs-utils perftest
RUN test -e /etc/libibverbs.d/vmw_pvrdma.driver
`
)

// NGC's libraries do not support PVRDMA (PVRDMA and vSphere Bitfusion, VMware, 2021, Using PVRDMA in an NGC Container):
// the image that is built finds the device, the one that it is built from does not.
func TestImageIsBuiltFoundAndRemoved(t *testing.T) {
	t.Parallel()
	m := newMachine(t,
		config{os: "ubuntu-22.04", preset: true, options: guest.Options{Images: func() []string { return []string{ngc, "rdma:1", "gone:1"} }}})
	set := m.Setters()[backends.KindImage]
	s := m.setting(backends.KindImage, "rdma:1")
	run := func(command string) ssh.Result {
		t.Helper()
		r, err := m.Run(t.Context(), m.vm, ssh.Command{Script: command, Sudo: true})
		testclass.OK(t, err)
		return r
	}
	if m.Survey(t.Context(), m.vm).Engine != nil {
		t.Error("an engine that nobody has installed answers")
	}
	if err := set.Set(t.Context(), s, backends.ValueOf(rebuilt), nil); backends.KindOf(err) != backends.KindPermanent {
		t.Errorf("without an engine: %v", err)
	}
	run("apt-get update && apt-get install -y docker.io && docker pull " + ngc)
	if e := m.Survey(t.Context(), m.vm).Engine; e == nil || e.Name != "docker" || len(e.Images) != 1 || e.Images[ngc] != "" {
		t.Fatalf("%+v", e)
	}
	inside := func(want map[string]backends.Libraries) {
		t.Helper()
		if d := cmp.Diff(want, m.Survey(t.Context(), m.vm).Engine.Inside); d != "" {
			t.Errorf("inside: %s", d)
		}
	}
	mofed := backends.Libraries{Version: "51mlnx1-1.51246", MOFED: true}
	inside(map[string]backends.Libraries{ngc: mofed})
	if err := set.Set(t.Context(), m.setting(backends.KindImage, ngc), backends.ValueOf(rebuilt),
		nil); backends.KindOf(err) != backends.KindRefused {
		t.Errorf("an image of somebody else: %v", err)
	}
	for range 2 {
		testclass.OK(t, set.Set(t.Context(), s, backends.ValueOf(rebuilt), nil))
		if v, err := set.Read(t.Context(), s); err != nil || v != backends.ValueOf(rebuilt) {
			t.Fatalf("%s, %v", v, err)
		}
	}
	inside(map[string]backends.Libraries{ngc: mofed, "rdma:1": {Version: "28.0-1ubuntu1", PVRDMA: true}})
	for image, devices := range map[string]string{ngc: "0 HCAs found", "rdma:1": "1 HCA found"} {
		listed := run("docker run --rm --net=host --privileged --ulimit memlock=-1 --entrypoint= " + image + " ibv_devinfo -l")
		if !strings.Contains(listed.Stdout, devices) {
			t.Errorf("%s: %q, want %s", image, listed.Stdout+listed.Stderr, devices)
		}
	}
	if err := set.Set(t.Context(), m.setting(backends.KindImage, "rdma:2"),
		backends.ValueOf(strings.ReplaceAll(rebuilt, " purge ", " update #")), nil); err == nil ||
		!strings.Contains(err.Error(), "build image rdma:2") {
		t.Errorf("MLNX_OFED still there: %v", err)
	}
	keeper, _ := backends.As[backends.Keeper](set)
	again := func(before string) error {
		t.Helper()
		kept, err := keeper.Keep(t.Context(), s, backends.Absent)
		testclass.OK(t, err)
		testclass.OK(t, set.Set(t.Context(), s, backends.ValueOf(rebuilt+"# again\n"), nil))
		run(before)
		kept = throughJSON(t, kept)
		if d := m.differs(t, backends.Assignment{Setting: s}, kept); len(d) != 1 {
			t.Errorf("another image has the name, differences: %v", d)
		}
		err = keeper.Restore(t.Context(), s, kept, nil)
		if d := m.differs(t, backends.Assignment{Setting: s}, kept); (err == nil) != (len(d) == 0) {
			t.Errorf("restored (%v), differences: %v", err, d)
		}
		return err
	}
	if err := again(":"); err != nil {
		t.Error(err)
	}
	if left := run("docker images --format '{{.Repository}}:{{.Tag}}'"); left.Stdout != ngc+"\nrdma:1\n" {
		t.Errorf("left: %q", left.Stdout)
	}
	var lost backends.Unobtainable
	if err := again("docker rmi $(docker images --no-trunc --format '{{.Tag}} {{.ID}}' | sed -n 's/^<none> //p')"); !errors.As(err, &lost) ||
		!slices.Equal(lost.Names, []string{"rdma:1"}) {
		t.Errorf("the image that had the name was pruned: %v", err)
	}
	for range 2 {
		testclass.OK(t, set.Set(t.Context(), s, backends.Absent, nil))
		if v, err := set.Read(t.Context(), s); err != nil || !v.IsAbsent() {
			t.Fatalf("%s, %v", v, err)
		}
	}
	if left := run("docker images --format '{{.Repository}}:{{.Tag}}'; ls /tmp"); left.Stdout != ngc+"\n" {
		t.Errorf("left: %q", left.Stdout)
	}
}
