package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/assets"
)

// The survey's line of a device at a NUMA node names what binds a program to it, and nothing where the line is something else.
func TestBindToTheNodeOfTheDevice(t *testing.T) {
	for line, want := range map[string]string{
		"numa 1 8-15 numactl":        "numactl --cpunodebind=1 --preferred=1",
		"numa 0 0-3,8-11 taskset":    "taskset -c 0-3,8-11",
		"numa 1 8-15 ":               "",
		"numa 1 8-15 other":          "",
		"numa 1 $(reboot) taskset":   "",
		"numa -1 0-3 taskset":        "",
		"numa 1 8-15 taskset taskse": "",
	} {
		d := sysfsDevices("device mlx5_0\n" + line + "\ndevice mlx5_1\n")
		if len(d) != 2 || d[0].Bind != want || d[1].Bind != "" {
			t.Errorf("%q: %+v", line, d)
		}
	}
}

// write creates files with their directories; those of a directory bin can be run.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file, mode := filepath.Join(dir, name), os.FileMode(0o644)
		if strings.HasPrefix(name, "bin/") {
			text, mode = "#!/bin/sh\n"+text, 0o755
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// The script itself: a command that is missing, or that refuses the node, is not named, because no test would run by it.
func TestScriptBindsByWhatWorks(t *testing.T) {
	t.Parallel()
	const accepts, refuses = `for last; do :; done; exec "$last"`, "echo out of range >&2; exit 1"
	for name, c := range map[string]struct {
		numactl, taskset string // "": missing
		node, cpus       string
		nodes            int
		want             string
	}{
		"numactl first":             {accepts, accepts, "1", "8-15", 2, "numactl --cpunodebind=1 --preferred=1"},
		"no numactl":                {"", accepts, "1", "0-3,8-11", 2, "taskset -c 0-3,8-11"},
		"a node without memory":     {refuses, accepts, "1", "8-15", 2, "taskset -c 8-15"},
		"CPUs that are not allowed": {refuses, refuses, "1", "8-15", 2, ""},
		"neither is there":          {"", "", "1", "8-15", 2, ""},
		"no node known":             {accepts, accepts, "-1", "8-15", 2, ""},
		"a node without CPUs":       {refuses, refuses, "1", "", 2, ""},
		"one node":                  {accepts, accepts, "0", "0-15", 1, ""},
		"no file":                   {accepts, accepts, "", "8-15", 2, ""},
	} {
		dir := t.TempDir()
		files := map[string]string{"bin/true": ":", "bin/readlink": "exit 1", "sys/class/infiniband/mlx5_0/fw_ver": "1",
			"sys/devices/system/node/node0/cpulist": c.cpus}
		if c.nodes > 1 {
			files["sys/devices/system/node/node1/cpulist"] = c.cpus
		}
		for file, text := range map[string]string{"bin/numactl": c.numactl, "bin/taskset": c.taskset,
			"sys/class/infiniband/mlx5_0/device/numa_node": c.node} {
			if text != "" {
				files[file] = text
			}
		}
		write(t, dir, files)
		cmd := exec.Command("/bin/sh", "-c", strings.ReplaceAll(assets.Script("rdma-devices.sh"), "/sys/", dir+"/sys/"))
		cmd.Env = []string{"PATH=" + dir + "/bin"}
		out, _ := cmd.Output() // it ends as its last reading did
		if d := sysfsDevices(string(out)); len(d) != 1 || d[0].Bind != c.want {
			t.Errorf("%s: %+v, want %q\n%s", name, d, c.want, out)
		}
	}
}
