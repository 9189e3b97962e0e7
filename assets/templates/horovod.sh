# Run it on the first guest, as a user whose SSH key all guests accept and who has sudo without a password there:
#   sh horovod.sh          start a container in every guest, run the benchmark, remove the containers
#   sh horovod.sh stop     remove the containers of an interrupted run
# It needs Docker and the NVIDIA container toolkit in every guest (rdma-setup generate docker-setup --nvidia). Over PVRDMA the
# image must have the distribution's RDMA libraries: rdma-setup generate dockerfile --base @IMAGE@
# The script searches the image for the benchmark; it has not been verified on GPUs.
set -eu
hosts="@HOSTS@"
image='@IMAGE@'
port=@PORT@
name=rdma-setup-horovod
transport='@TRANSPORT@'

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

# The programs that the run starts in the containers must be in the image.
needs='sshd ssh ssh-keygen horovodrun python3'
[ "$transport" = NET/Socket ] || needs="$needs ibv_devinfo"
for h in $hosts; do
	lacks=$(on "$h" "docker run --rm --entrypoint= $image sh -c 'PATH=\$PATH:/usr/sbin; for c in $needs; do command -v \$c >/dev/null || echo \$c; done'" </dev/null) ||
		die "$image cannot be started in $h"
	# shellcheck disable=SC2086,SC2116 # echo joins its lines
	[ -z "$lacks" ] || die "$image in $h lacks $(echo $lacks): rdma-setup generate dockerfile adds ibv_devinfo (ibverbs-utils) and SSH"
done

# The containers communicate over SSH with a key that exists only as long as they do.
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

# If the device is not visible in a guest, NCCL would silently fall back to TCP.
if [ "$transport" != NET/Socket ]; then
	for h in $hosts; do
		on "$h" "docker exec $name ibv_devinfo -l" </dev/null | grep -q '^[1-9][0-9]* HCAs* found' || die "the container in $h sees no RDMA device"
	done
fi
script=$(on "$first" "docker exec $name find /horovod/examples /examples -name tensorflow2_synthetic_benchmark.py" </dev/null 2>/dev/null | head -n 1) || :
[ -n "$script" ] || die "$image has no tensorflow2_synthetic_benchmark.py below /horovod/examples or /examples"
on "$first" "docker exec @ENV@ $name horovodrun -np @RANKS@ -H @SLOTS@ -p $port --start-timeout 120 python3 $script --model @MODEL@ --fp16-allreduce" </dev/null 2>&1 | tee "$work/log"
grep -q '^.*Total img/sec' "$work/log" || die "the benchmark came to no result"
grep -qE '@PROOF@' "$work/log" || die "NCCL did not use $transport: look at its lines above"
echo "@MODEL@ over $transport: $(grep 'Total img/sec' "$work/log" | tail -n 1 | sed 's/.*Total/Total/')"
