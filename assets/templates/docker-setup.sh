# Run it as root in the guest:  sh docker-setup.sh        Take it back:  sh docker-setup.sh undo
# It may be run again: what is there is left as it is. Docker's settings are another file: rdma-setup generate daemon-json.
# shellcheck disable=SC1091,SC2046,SC2086 # the file is of the guest; lists of packages are split into words
set -eu
nvidia=@NVIDIA@
remove_old=@REMOVE_OLD@
remove_nvidia1=@REMOVE_NVIDIA1@
state=/var/lib/rdma-setup-docker

die() { echo "error: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "this needs root"
. /etc/os-release
case " $ID ${ID_LIKE:-} " in
*" ubuntu "*) family=apt repo=ubuntu ;;
*" debian "*) family=apt repo=debian ;;
*" fedora "* | *" rhel "* | *" centos "*) family=dnf repo=centos ;;
*) die "no repository is known for $ID" ;;
esac
[ "$ID" = fedora ] && repo=fedora
rpms=dnf
command -v dnf >/dev/null 2>&1 || rpms=yum # release 7
codename=${UBUNTU_CODENAME:-${VERSION_CODENAME:-}}

has() {
	if [ $family = apt ]; then dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; else rpm -q "$1" >/dev/null 2>&1; fi
}
# add installs what is missing and remembers it, so that undo takes away nothing else.
add() {
	missing=
	for p in "$@"; do has "$p" || missing="$missing $p"; done
	[ -n "$missing" ] || return 0
	mkdir -p $state
	for p in $missing; do echo "$p" >>$state/packages; done
	if [ $family = apt ]; then
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
	else
		$rpms install -y $missing
	fi
}

if [ "${1:-}" = undo ]; then
	if [ -f $state/packages ]; then
		if [ $family = apt ]; then
			DEBIAN_FRONTEND=noninteractive apt-get purge -y $(sort -u $state/packages)
		else
			$rpms remove -y $(sort -u $state/packages)
		fi
	fi
	if [ -f $state/daemon.json ]; then
		cp $state/daemon.json /etc/docker/daemon.json
	elif [ -f $state/no-daemon.json ]; then
		rm -f /etc/docker/daemon.json
	fi
	rm -f /etc/apt/sources.list.d/rdma-setup-docker.list /etc/apt/keyrings/rdma-setup-docker.asc \
		/etc/apt/sources.list.d/rdma-setup-nvidia.list /etc/apt/keyrings/rdma-setup-nvidia.asc \
		/etc/yum.repos.d/rdma-setup-docker.repo /etc/yum.repos.d/rdma-setup-nvidia.repo
	rm -rf $state
	echo "undone; images and containers stay in /var/lib/docker"
	exit 0
fi

# A node of Kubernetes has a runtime of its own; containerd.io would replace it.
if ! has docker-ce; then
	for u in kubelet k3s k3s-agent rke2-server rke2-agent crio; do
		if systemctl is-active -q $u; then die "$u runs here: its container runtime is left alone. Install the toolkit only, then: nvidia-ctk runtime configure --runtime=containerd (or crio), and restart that"; fi
	done
	if has containerd && ! has docker.io; then die "containerd of the distribution is installed, and containerd.io would replace it: it is left alone"; fi
fi

# Docker of the distribution, or of old, stands in the way of docker-ce.
for p in docker docker-engine docker.io podman-docker; do
	has $p || continue
	[ $remove_old = yes ] || die "$p is installed: generate this script with --remove-old to take it away; images and containers stay"
	if [ $family = apt ]; then apt-get remove -y $p; else $rpms remove -y $p; fi
done

# nvidia-docker 1 keeps its driver in volumes; the containers that use them go with it.
if [ $remove_nvidia1 = yes ] && has nvidia-docker; then
	for v in $(docker volume ls -q -f driver=nvidia-docker); do
		for c in $(docker ps -q -a -f volume="$v"); do docker rm -f "$c"; done
	done
	if [ $family = apt ]; then apt-get purge -y nvidia-docker; else $rpms remove -y nvidia-docker; fi
fi

if [ $family = apt ]; then
	apt-get update
	add ca-certificates curl gnupg
	mkdir -p /etc/apt/keyrings
	key=/etc/apt/keyrings/rdma-setup-docker.asc
	curl -fsSL "https://download.docker.com/linux/$repo/gpg" -o $key
	gpg --show-keys --with-colons $key | grep '^fpr:' | grep -q ':@KEY@:' || { rm -f $key; die "Docker's key does not have the fingerprint @KEY@"; }
	echo "deb [arch=$(dpkg --print-architecture) signed-by=$key] https://download.docker.com/linux/$repo $codename stable" >/etc/apt/sources.list.d/rdma-setup-docker.list
	if [ $nvidia = yes ]; then
		key=/etc/apt/keyrings/rdma-setup-nvidia.asc
		curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey -o $key
		echo "deb [signed-by=$key] https://nvidia.github.io/libnvidia-container/stable/deb/$(dpkg --print-architecture) /" >/etc/apt/sources.list.d/rdma-setup-nvidia.list
	fi
	apt-get update
else
	add curl
	curl -fsSL "https://download.docker.com/linux/$repo/docker-ce.repo" -o /etc/yum.repos.d/rdma-setup-docker.repo
	if [ $nvidia = yes ]; then
		curl -fsSL https://nvidia.github.io/libnvidia-container/stable/rpm/nvidia-container-toolkit.repo -o /etc/yum.repos.d/rdma-setup-nvidia.repo
	fi
fi
add docker-ce docker-ce-cli containerd.io
[ $nvidia = no ] || add nvidia-container-toolkit
systemctl enable --now docker
# Docker knows the toolkit when it is configured, and reads its configuration when it starts (NVIDIA Container Toolkit,
# Installation Guide, Configuring Docker).
if [ $nvidia = yes ]; then
	mkdir -p $state /etc/docker
	if [ ! -f $state/daemon.json ] && [ ! -f $state/no-daemon.json ]; then
		if [ -f /etc/docker/daemon.json ]; then cp /etc/docker/daemon.json $state/daemon.json; else : >$state/no-daemon.json; fi
	fi
	old=$(cksum </etc/docker/daemon.json 2>/dev/null) || old=
	nvidia-ctk runtime configure --runtime=docker
	[ "$old" = "$(cksum </etc/docker/daemon.json)" ] || systemctl restart docker
fi

echo "Prove it:"
echo "  docker run --rm hello-world"
[ $nvidia = no ] || echo "  docker run --rm --gpus all ubuntu nvidia-smi"
echo "Next: rdma-setup generate daemon-json, container-routes, dockerfile"
