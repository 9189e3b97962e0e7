# Run it as root in the guest:  sh docker-setup.sh        Undo:  sh docker-setup.sh undo
# It can be run again; what is already set up is not changed. Docker's settings are a separate file: rdma-setup generate daemon-json.
# shellcheck disable=SC1091,SC2046,SC2086 # the file is of the guest; lists of packages are split into words
set -eu
engine=@ENGINE@
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
lacks() {
	for p in "$@"; do has "$p" || return 0; done
	return 1
}
offered() { if [ $family = apt ]; then apt-cache show "$1"; else $rpms -q info "$1"; fi >/dev/null 2>&1; }
installed() {
	if [ $family = apt ]; then dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^i[^ ]* *//p'; else rpm -qa --qf '%{NAME}\n'; fi | LC_ALL=C sort -u
}
# note records the packages installed since the list was made, so that undo removes only these.
note() {
	[ -f $state/before ] || return 0
	installed | LC_ALL=C comm -13 $state/before - >>$state/packages
	rm -f $state/before
}
add() {
	lacks "$@" || return 0
	if [ ! -f $state/before ]; then
		installed >$state/before.new
		mv $state/before.new $state/before
	fi
	if [ $family = apt ]; then
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
	else
		$rpms install -y "$@"
	fi
	note
}
# undo restores Docker's earlier configuration.
keep() {
	[ -f $state/daemon.json ] || [ -f $state/no-daemon.json ] || if [ -f /etc/docker/daemon.json ]; then
		cp /etc/docker/daemon.json $state/daemon.json.new
		mv $state/daemon.json.new $state/daemon.json
	else
		: >$state/no-daemon.json
	fi
}

if [ "${1:-}" = undo ]; then
	note
	if [ -s $state/packages ]; then
		# Neither removes packages that others have come to depend on in the meantime.
		if [ $family = apt ]; then
			DEBIAN_FRONTEND=noninteractive dpkg --purge $(sort -u $state/packages)
		else
			rpm -e $(rpm -q --qf '%{NAME}\n' $(sort -u $state/packages) | grep -v ' is not installed') || die "rpm took nothing away"
		fi
	fi
	old=$(cat /etc/docker/daemon.json 2>/dev/null) || :
	if [ -f $state/daemon.json ]; then
		mkdir -p /etc/docker
		cp $state/daemon.json /etc/docker/daemon.json
	elif [ -f $state/no-daemon.json ]; then
		rm -f /etc/docker/daemon.json
	fi
	now=$(cat /etc/docker/daemon.json 2>/dev/null) || :
	if [ "$old" != "$now" ] && systemctl is-active -q docker; then systemctl restart docker; fi
	if [ -f $state/no-directory ]; then
		rm -f /etc/docker/key.json # Docker created it
		rmdir /etc/docker 2>/dev/null || :
	fi
	if [ -f $state/no-cni ]; then rmdir /etc/cni/net.d /etc/cni 2>/dev/null || :; fi # containerd created them
	if [ -f $state/no-group ] && grep -q '^docker:' /etc/group; then groupdel docker; fi # packages leave it
	rm -f /etc/apt/sources.list.d/rdma-setup-docker.list /etc/apt/keyrings/rdma-setup-docker.asc \
		/etc/apt/sources.list.d/rdma-setup-nvidia.list /etc/apt/keyrings/rdma-setup-nvidia.asc \
		/etc/yum.repos.d/rdma-setup-docker.repo /etc/yum.repos.d/rdma-setup-nvidia.repo
	rm -rf $state
	echo "undone; images and containers stay in /var/lib/docker, docker0 and its firewall rules until the next reboot"
	exit 0
fi

wanted="docker-ce docker-ce-cli containerd.io"
old="docker docker-engine docker.io podman-docker"
# If the kernel has AppArmor enabled, Docker starts no container without the program of a package that it only recommends.
profiles=
if [ $family = apt ] && grep -q Y /sys/module/apparmor/parameters/enabled 2>/dev/null; then profiles=apparmor; fi
if [ $engine = distribution ]; then
	[ $family = apt ] || die "$ID has no Docker of its own: generate this script without --distribution"
	wanted=docker.io old="docker-ce docker-engine podman-docker"
fi

# A node of Kubernetes has a runtime of its own; containerd.io would replace it.
if lacks $wanted; then
	for u in kubelet k3s k3s-agent rke2-server rke2-agent crio; do
		if systemctl is-active -q $u; then die "$u runs here: its container runtime is left alone. Install the toolkit only, then: nvidia-ctk runtime configure --runtime=containerd (or crio), and restart that"; fi
	done
	if [ $engine = docker-ce ] && has containerd && ! has docker.io; then die "containerd of the distribution is installed, and containerd.io would replace it: it is left alone"; fi
fi

# Another Docker conflicts with the requested one.
for p in $old; do
	has $p || continue
	[ $remove_old = yes ] || die "$p is installed: generate this script with --remove-old to take it away; images and containers stay"
	if [ $family = apt ]; then apt-get remove -y $p; else $rpms remove -y $p; fi
done

mkdir -p $state
if [ ! -f $state/begun ]; then
	[ -d /etc/docker ] || : >$state/no-directory
	[ -d /etc/cni ] || : >$state/no-cni
	grep -q '^docker:' /etc/group || : >$state/no-group
	: >$state/begun
fi

# nvidia-docker 1 keeps its driver in volumes; the containers that use them are removed with it.
if [ $remove_nvidia1 = yes ] && has nvidia-docker; then
	for v in $(docker volume ls -q -f driver=nvidia-docker); do
		for c in $(docker ps -q -a -f volume="$v"); do docker rm -f "$c"; done
	done
	if [ $family = apt ]; then apt-get purge -y nvidia-docker; else $rpms remove -y nvidia-docker; fi
fi

toolkit=
[ $nvidia = no ] || toolkit='nvidia-container-toolkit'
if [ $family = apt ] && lacks $wanted $profiles $toolkit; then apt-get update; fi
# A repository is added for missing packages; the toolkit's only if the guest's own repositories do not have it.
if lacks $wanted && [ $engine = docker-ce ]; then
	if [ $family = apt ]; then
		add ca-certificates curl gnupg
		mkdir -p /etc/apt/keyrings
		key=/etc/apt/keyrings/rdma-setup-docker.asc
		curl -fsSL "https://download.docker.com/linux/$repo/gpg" -o $key
		gpg --show-keys --with-colons $key | grep '^fpr:' | grep -q ':@KEY@:' || { rm -f $key; die "Docker's key does not have the fingerprint @KEY@"; }
		echo "deb [arch=$(dpkg --print-architecture) signed-by=$key] https://download.docker.com/linux/$repo $codename stable" >/etc/apt/sources.list.d/rdma-setup-docker.list
		apt-get update
	else
		add curl
		curl -fsSL "https://download.docker.com/linux/$repo/docker-ce.repo" -o /etc/yum.repos.d/rdma-setup-docker.repo
	fi
fi
if [ -n "$toolkit" ] && ! has $toolkit && ! offered $toolkit; then
	if [ $family = apt ]; then
		add ca-certificates curl
		mkdir -p /etc/apt/keyrings
		key=/etc/apt/keyrings/rdma-setup-nvidia.asc
		curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey -o $key
		echo "deb [signed-by=$key] https://nvidia.github.io/libnvidia-container/stable/deb/$(dpkg --print-architecture) /" >/etc/apt/sources.list.d/rdma-setup-nvidia.list
		apt-get update
	else
		add curl
		curl -fsSL https://nvidia.github.io/libnvidia-container/stable/rpm/nvidia-container-toolkit.repo -o /etc/yum.repos.d/rdma-setup-nvidia.repo
	fi
fi
add $wanted $profiles
if ! systemctl is-enabled -q docker || ! systemctl is-active -q docker; then systemctl enable --now docker; fi
# Docker reads its configuration when it starts (NVIDIA Container Toolkit, Installation Guide, Configuring Docker), and looks then
# for the toolkit's hook, without which it refuses --gpus (moby, daemon/nvidia_linux.go). After an interrupted run it is restarted.
if [ -n "$toolkit" ]; then
	if lacks $toolkit; then : >$state/restart; fi
	add $toolkit
	keep
	cat /etc/docker/daemon.json >$state/was 2>/dev/null || :
	nvidia-ctk runtime configure --runtime=docker
	cmp -s $state/was /etc/docker/daemon.json || : >$state/restart
	rm -f $state/was
	if [ -f $state/restart ]; then
		systemctl restart docker
		rm -f $state/restart
	fi
fi

echo "Prove it:"
echo "  docker run --rm hello-world"
[ $nvidia = no ] || echo "  docker run --rm --gpus all ubuntu nvidia-smi"
echo "Next: rdma-setup generate daemon-json, container-routes, dockerfile"
