package guest

import "testing"

// The survey's line of a device at a NUMA node names what binds a program to it: numactl before taskset, and nothing where neither
// is there or the line is something else.
func TestBindToTheNodeOfTheDevice(t *testing.T) {
	for line, want := range map[string]string{
		"numa 1 8-15 /usr/bin/numactl":        "numactl --cpunodebind=1 --preferred=1",
		"numa 0 0-3,8-11 /usr/bin/taskset":    "taskset -c 0-3,8-11",
		"numa 1 8-15 ":                        "",
		"numa 1 8-15 /usr/bin/other":          "",
		"numa 1 $(reboot) /usr/bin/taskset":   "",
		"numa -1 0-3 /usr/bin/taskset":        "",
		"numa 1 8-15 /usr/bin/taskset taskse": "",
	} {
		d := sysfsDevices("device mlx5_0\n" + line + "\ndevice mlx5_1\n")
		if len(d) != 2 || d[0].Bind != want || d[1].Bind != "" {
			t.Errorf("%q: %+v", line, d)
		}
	}
}
