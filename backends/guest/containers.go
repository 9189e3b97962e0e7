package guest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// containerScript asks the container engines of a guest for the running containers that have RDMA devices or GPUs, and
// looks into each: is MLNX_OFED there, and does the verbs library find devices (PVRDMA and vSphere Bitfusion, VMware,
// 2021, Using PVRDMA in an NGC container). Twenty a guest are enough to judge by, and an engine that hangs takes
// seconds, not the guest's whole time.
func containerScript() string {
	return `echo read
for e in docker podman nerdctl; do
	command -v $e >/dev/null || continue
	list=$(timeout 5 $e ps -q) || { echo "@failed $e"; continue; }
	until=$(($(date +%s) + 10))
	for c in $(echo "$list" | head -n 20); do
		[ "$(date +%s)" -lt $until ] || break
		about=$(timeout 5 $e inspect "$c") || continue
		case $about in *infiniband*|*nvidia*|*'"Privileged": true'*) ;; *) continue ;; esac
		printf '@container %s\n%s\n@inside\n' "$c" "$about"
		timeout 5 $e exec "$c" sh -c 'ls -d /dev/infiniband/uverbs* && echo devices
` + librariesScript + `
			ibv_devinfo -l' </dev/null
	done
done`
}

// inspected is what an engine says of a container; Docker, Podman and nerdctl agree on this much.
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

// containers reads what containerScript printed: nil when an engine could not be asked, empty when nothing that uses
// RDMA or GPUs runs.
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
			continue // podman calls itself docker too: once is enough
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

// librariesScript tells inside a container which verbs libraries are there. It holds no single quote. That NGC's images
// keep the packages of MLNX_OFED in /opt/mellanox says nothing where others are installed: an image that was made fit for
// PVRDMA keeps them too. A provider is its library and the file that names it, which outlives the package.
const librariesScript = `v=$(dpkg-query -W -f "\${Version}" libibverbs1) || v=$(rpm -q --qf "%{VERSION}-%{RELEASE}" libibverbs) || v=
[ -z "$v" ] || echo "libibverbs $v"
if command -v ofed_info || [ -e /opt/mellanox/DEBS ]; then echo mofed; fi
for f in /usr/lib/*/libibverbs/libvmw_pvrdma-*.so /usr/lib64/libibverbs/libvmw_pvrdma-*.so /usr/lib/libibverbs/libvmw_pvrdma-*.so; do
	[ ! -e "$f" ] || [ ! -e /etc/libibverbs.d/vmw_pvrdma.driver ] || echo pvrdma
done`

// librariesOf reads what librariesScript printed among other lines. MLNX_OFED's packages bear mlnx in their version.
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

// verbsDevices reads "1 HCA found:" of ibv_devinfo -l.
func verbsDevices(lines []string) int {
	for _, l := range lines {
		if w := strings.Fields(l); len(w) >= 3 && strings.HasPrefix(w[1], "HCA") && strings.HasPrefix(w[2], "found") {
			n, _ := strconv.Atoi(w[0]) // "No HCAs found" is none
			return n
		}
	}
	return 0
}
