package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

const (
	ngcInspect   = `[{"Id": "aaa", "Name": "/ngc", "HostConfig": {"NetworkMode": "host", "Privileged": true, "CapAdd": ["CAP_IPC_LOCK"], "Runtime": "nvidia"}, "Path": "/dev/infiniband"}]`
	plainInspect = `[{"Id": "bbb", "Name": "/web", "HostConfig": {"NetworkMode": "bridge", "Privileged": false, "CapAdd": null}}]`
	gpuInspect   = `[{"Id": "ccc", "Name": "train", "HostConfig": {"NetworkMode": "podman", "CapAdd": [], "DeviceRequests": [{"Driver": "nvidia"}]}}]`
)

func TestContainers(t *testing.T) {
	ngc := "@container aaa\n" + ngcInspect + "\n@inside\n/dev/infiniband/uverbs0\ndevices\nmofed\nNo HCAs found\n"
	for _, tt := range []struct {
		name, text string
		want       []backends.Container
	}{
		{"not asked", "", nil},
		{"no engine, or nothing runs", "read\n", []backends.Container{}},
		{"an engine that does not answer", "read\n@failed docker\n", nil},
		{"MLNX_OFED finds no PVRDMA device (PVRDMA and vSphere Bitfusion, NGC)", "read\n" + ngc,
			[]backends.Container{{Name: "ngc", Libraries: backends.Libraries{MOFED: true}, Devices: true, IPCLock: true, HostNet: true}}},
		{"podman that is called docker too", "read\n" + ngc + ngc,
			[]backends.Container{{Name: "ngc", Libraries: backends.Libraries{MOFED: true}, Devices: true, IPCLock: true, HostNet: true}}},
		{"rebuilt, and with what it needs",
			"read\n@container aaa\n" + ngcInspect + "\n@inside\n/dev/infiniband/uverbs0\ndevices\n1 HCA found:\n\trocep19s0f1\n",
			[]backends.Container{{Name: "ngc", Verbs: 1, Devices: true, IPCLock: true, HostNet: true}}},
		{"made fit, with what NGC leaves of MLNX_OFED in /opt/mellanox",
			"read\n@container aaa\n" + ngcInspect +
				"\n@inside\n/dev/infiniband/uverbs0\ndevices\nlibibverbs 28.0-1ubuntu1\nmofed\npvrdma\n1 HCA found:\n",
			[]backends.Container{{Name: "ngc", Libraries: backends.Libraries{Version: "28.0-1ubuntu1", PVRDMA: true}, Verbs: 1, Devices: true,
				IPCLock: true, HostNet: true}}},
		{"GPUs without RDMA devices", "read\n@container ccc\n" + gpuInspect + "\n@inside\nsh: ibv_devinfo: not found\n",
			[]backends.Container{{Name: "train"}}},
		{"privileged, but of no concern", "read\n@container bbb\n" + plainInspect + "\n@inside\n\n", []backends.Container{}},
		{"half an answer", "read\n@container aaa\n[{\"Id\"", []backends.Container{}},
	} {
		if d := cmp.Diff(tt.want, facts{"containers": tt.text}.containers()); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

// The script itself, against engines that answer as the real ones do.
func TestContainerScript(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{
		"docker": `case "$1" in ps) printf 'aaa\nbbb\n' ;;
inspect) case $2 in aaa) cat "$W/ngc" ;; bbb) cat "$W/web" ;; esac ;;
exec) echo "$2" >>"$W/entered"; printf '/dev/infiniband/uverbs0\ndevices\n2 HCAs found:\n\tmlx5_0\n\tmlx5_1\n' ;; esac`,
		"nerdctl": `[ -e "$W/down" ] && exit 1; [ "$1" = ps ]`,
	} {
		testclass.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	}
	for name, text := range map[string]string{"ngc": ngcInspect, "web": plainInspect} {
		testclass.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	run := func() []backends.Container {
		cmd := exec.Command("/bin/sh", "-c", containerScript())
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "W=" + dir}
		out, err := cmd.Output()
		testclass.OK(t, err)
		return facts{"containers": string(out)}.containers()
	}
	want := []backends.Container{{Name: "ngc", Verbs: 2, Devices: true, IPCLock: true, HostNet: true}}
	if d := cmp.Diff(want, run()); d != "" {
		t.Error(d)
	}
	if entered, err := os.ReadFile(filepath.Join(dir, "entered")); err != nil || strings.TrimSpace(string(entered)) != "aaa" {
		t.Errorf("a container that has nothing to do with RDMA was entered: %s %v", entered, err)
	}
	testclass.OK(t, os.WriteFile(filepath.Join(dir, "down"), nil, 0o644))
	if got := run(); got != nil {
		t.Errorf("an engine that is down is taken for one without containers: %v", got)
	}
}
