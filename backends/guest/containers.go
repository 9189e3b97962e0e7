package guest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
)

// containerScript inspects the running containers that have RDMA devices or GPUs: whether MLNX_OFED is installed, and whether the
// verbs library finds devices (PVRDMA and vSphere Bitfusion, VMware, 2021, Using PVRDMA in an NGC container).
func containerScript() string {
	return script("containers.sh", "ls -d /dev/infiniband/uverbs* && echo devices\n"+assets.Script("libraries.sh")+"ibv_devinfo -l")
}

// inspected is the part of an engine's inspect output on which Docker, Podman and nerdctl agree.
type inspected struct {
	ID         string `json:"Id"`
	Name       string
	HostConfig struct {
		NetworkMode    string
		Privileged     bool
		CapAdd         []string
		Runtime        string
		DeviceRequests []json.RawMessage
	}
}

// containers parses the output of containerScript: nil if an engine could not be queried, empty if no container uses RDMA or
// GPUs.
func (f facts) containers() []backends.Container {
	text, ok := strings.CutPrefix(f["containers"], "read\n")
	if !ok || strings.Contains("\n"+text, "\n@failed ") {
		return nil
	}
	out := []backends.Container{}
	seen := map[string]bool{}
	for part := range strings.SplitSeq("\n"+text, "\n@container ") {
		_, rest, _ := strings.Cut(part, "\n")
		about, inside, ok := strings.Cut(rest, "\n@inside\n")
		var all []inspected
		if !ok || json.Unmarshal([]byte(about), &all) != nil || len(all) != 1 || seen[all[0].ID] {
			continue // podman also provides a docker command: count it once
		}
		i := all[0]
		seen[i.ID] = true
		lines := strings.Split(inside, "\n")
		c := backends.Container{
			Name: strings.TrimPrefix(i.Name, "/"), HostNet: i.HostConfig.NetworkMode == "host",
			Devices: slices.Contains(lines, "devices"), Libraries: librariesOf(lines), Verbs: verbsDevices(lines),
			IPCLock: i.HostConfig.Privileged || slices.ContainsFunc(i.HostConfig.CapAdd, func(c string) bool {
				c = strings.TrimPrefix(strings.ToUpper(c), "CAP_")
				return c == "IPC_LOCK" || c == "ALL"
			}),
		}
		gpu := i.HostConfig.Runtime == "nvidia" || len(i.HostConfig.DeviceRequests) > 0
		if c.Devices || c.MOFED || c.Verbs > 0 || gpu {
			out = append(out, c)
		}
	}
	return out
}

// librariesOf parses the output of libraries.sh among other lines. Versions of MLNX_OFED's packages contain mlnx.
func librariesOf(lines []string) (l backends.Libraries) {
	for _, line := range lines {
		if v, is := strings.CutPrefix(line, "libibverbs "); is {
			l.Version = strings.TrimSpace(v)
		}
	}
	l.PVRDMA = slices.Contains(lines, "pvrdma")
	l.MOFED = strings.Contains(strings.ToLower(l.Version), "mlnx") || l.Version == "" && slices.Contains(lines, "mofed")
	return l
}

// verbsDevices parses "1 HCA found:" of ibv_devinfo -l.
func verbsDevices(lines []string) int {
	for _, l := range lines {
		if w := strings.Fields(l); len(w) >= 3 && strings.HasPrefix(w[1], "HCA") && strings.HasPrefix(w[2], "found") {
			n, _ := strconv.Atoi(w[0]) // "No HCAs found" means none
			return n
		}
	}
	return 0
}
