package generate

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A Horovod is a script that runs Horovod's benchmark in containers over the guests, as the guide ends (Reference
// Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7, NVIDIA/Mellanox,
// Deploy and Run a Horovod Framework: the image, and VGG16), and takes the containers away again.
type Horovod struct {
	Hosts []netip.Addr // of the guests; the first one runs the script
	Image string       // with Horovod, an SSH server and its examples
	GPUs  int          // ranks for each guest
	Port  int          // of the containers' SSH servers, which share the guests' network; 0: 12345
	Model string       // "": VGG16
	Net   NCCL
}

// Check names what cannot be run.
func (h Horovod) Check() error {
	seen := map[netip.Addr]bool{}
	for _, a := range h.Hosts {
		if !a.Is4() || seen[a] {
			return fmt.Errorf("%s is no IPv4 address, or is there twice", a)
		}
		seen[a] = true
	}
	switch {
	case len(h.Hosts) < 2:
		return fmt.Errorf("%d guests: Horovod over a network needs two", len(h.Hosts))
	case !image.MatchString(h.Image):
		return fmt.Errorf("%q is no container image", h.Image)
	case h.GPUs < 1 || h.GPUs > 16:
		return fmt.Errorf("%d GPUs for each guest: want 1 to 16", h.GPUs)
	case h.Port < 0 || h.Port > 65535:
		return fmt.Errorf("%d is no port", h.Port)
	case h.Model != "" && !deviceName.MatchString(h.Model):
		return fmt.Errorf("%q is no name of a model", h.Model)
	}
	return h.Net.Check()
}

// Script writes it for a POSIX shell.
func (h Horovod) Script(o Origin) (string, error) {
	if err := h.Check(); err != nil {
		return "", err
	}
	var hosts, slots, env []string
	for _, a := range h.Hosts {
		hosts = append(hosts, a.String())
		slots = append(slots, a.String()+":"+strconv.Itoa(h.GPUs))
	}
	for _, v := range h.Net.Variables(false) {
		env = append(env, "-e "+v.Name+"="+v.Value)
	}
	port, model, transport := h.Port, h.Model, "NET/IB"
	if port == 0 {
		port = 12345
	}
	if model == "" {
		model = "VGG16"
	}
	if h.Net.Path == TCP {
		transport = "NET/Socket"
	}
	return "#!/bin/sh\n" + o.Comment("#") + strings.NewReplacer(
		"@HOSTS@", strings.Join(hosts, " "), "@SLOTS@", strings.Join(slots, ","), "@RANKS@", strconv.Itoa(h.GPUs*len(h.Hosts)), "@IMAGE@", h.Image,
		"@ENV@", strings.Join(env, " "), "@PORT@", strconv.Itoa(port), "@MODEL@", model, "@TRANSPORT@", transport,
	).Replace(horovodScript), nil
}

const horovodScript = `# Run it on the first guest, as a user whose ssh key all guests take and who may sudo without a password there:
#   sh horovod.sh          start a container in every guest, run the benchmark, remove the containers
#   sh horovod.sh stop     remove the containers of a run that was cut off
# It needs Docker and the NVIDIA container toolkit in every guest (rdma-setup generate docker-setup --nvidia). Over PVRDMA the
# image must have the distribution's RDMA libraries: rdma-setup generate dockerfile --base @IMAGE@
# Where the image keeps the benchmark is looked for; nobody has verified this script on GPUs.
set -eu
hosts="@HOSTS@"
image='@IMAGE@'
port=@PORT@
name=rdma-setup-horovod

die() { echo "error: $*" >&2; exit 1; }
on() {
	h=$1
	shift
	ssh -o BatchMode=yes -o ConnectTimeout=10 "$h" "sudo -n $*"
}
stop() {
	for h in $hosts; do on "$h" "docker rm -f $name" >/dev/null 2>&1 </dev/null || :; done
}
if [ "${1:-}" = stop ]; then
	stop
	exit 0
fi
for h in $hosts; do
	! on "$h" "docker inspect $name" >/dev/null 2>&1 </dev/null || die "a container $name is in $h already; sh $0 stop removes it"
done

# The containers talk over SSH with a key that lives as long as they do.
work=$(mktemp -d)
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
for h in $hosts; do
	on "$h" "docker run -d --name $name --gpus all --net=host --ipc=host --privileged --cap-add=IPC_LOCK --ulimit memlock=-1 --entrypoint= $image sleep infinity" </dev/null >/dev/null ||
		die "no container could be started in $h"
	on "$h" "docker exec -i $name sh -c 'umask 77; mkdir -p ~/.ssh /run/sshd; cat >~/.ssh/authorized_keys; ssh-keygen -A >/dev/null; /usr/sbin/sshd -p $port'" <"$work/key.pub" ||
		die "the container in $h has no SSH server, or port $port is taken"
done
first=${hosts%% *}
on "$first" "docker exec -i $name sh -c 'umask 77; cat >~/.ssh/id_ed25519; echo StrictHostKeyChecking accept-new >~/.ssh/config'" <"$work/key"

# Where a guest's device is not seen, NCCL would silently fall back to TCP.
if [ '@TRANSPORT@' = NET/IB ]; then
	for h in $hosts; do
		on "$h" "docker exec $name ibv_devinfo -l" </dev/null | grep -q '^[1-9][0-9]* HCAs* found' || die "the container in $h sees no RDMA device"
	done
fi
script=$(on "$first" "docker exec $name find /horovod/examples /examples -name tensorflow2_synthetic_benchmark.py" </dev/null 2>/dev/null | head -n 1) || :
[ -n "$script" ] || die "$image has no tensorflow2_synthetic_benchmark.py below /horovod/examples or /examples"
on "$first" "docker exec @ENV@ $name horovodrun -np @RANKS@ -H @SLOTS@ -p $port --start-timeout 120 python3 $script --model @MODEL@ --fp16-allreduce" </dev/null 2>&1 | tee "$work/log"
grep -q '^.*Total img/sec' "$work/log" || die "the benchmark came to no result"
grep -q '@TRANSPORT@' "$work/log" || die "NCCL did not use @TRANSPORT@: look at its lines above"
echo "@MODEL@ over @TRANSPORT@: $(grep 'Total img/sec' "$work/log" | tail -n 1 | sed 's/.*Total/Total/')"
`
