#!/bin/sh
# Installs MLNX_OFED from an archive, or DOCA-OFED from the repository in the package doca-host (NVIDIA, DOCA-Host Installation and
# Upgrade), after an earlier MLNX_OFED was removed.
#
#   ofed-install.sh WORK KIND ARCHIVE VERSION NAME UNINSTALL
#
#   WORK       the directory that marks an installation as begun. It outlives a reboot; its parent belongs to root.
#   KIND       archive or doca
#   NAME       the directory in the archive
#   UNINSTALL  the script ofed-uninstall.sh
#
# A complete installation by an earlier attempt is not repeated. If the installer ends before it has changed anything, no trace is
# left; otherwise WORK remains, empty.
work=$1 kind=$2 archive=$3 version=$4 name=$5 uninstall=$6
umask 077

# owned creates a directory of root's, or accepts an existing one; any other owner may have prepared a trap.
owned() {
	mkdir -m "$2" "$1" 2>/dev/null || [ -d "$1" ] || mkdir -m "$2" "$1" || exit 1
	if [ -L "$1" ] || [ "$(stat -c '%u' "$1")" != 0 ]; then
		echo "$1 is not a directory of root" >&2
		exit 70
	fi
	chmod "$2" "$1" || exit 1
}
fresh=yes
[ ! -d "$work" ] || fresh=
owned "${work%/*}" 755
owned "$work" 700
[ "$(cat "$work/installed" 2>/dev/null)" = "$version" ] && exit 0
rm -rf -- "${work:?}"/*
umask 022 # what the installer makes is for everybody; WORK is not

# ended reports why an installation ended early.
ended() {
	cd /
	rm -rf -- "${work:?}"/*
	case $fresh$1 in yes22 | yes28 | yes61 | yes62 | yes172)
		rmdir "$work" && rmdir "${work%/*}" 2>/dev/null
		;;
	esac
	exit "$1"
}

if [ "$kind" = doca ]; then
	[ -r "$archive" ] || { echo 'cannot read it' >&2; ended 61; }
	sh -c "$uninstall" || ended 1
	if command -v dpkg >/dev/null; then
		export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
		{ dpkg -i "$archive" && apt-get -q update && apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install doca-ofed </dev/null; } || ended 1
	else
		{ rpm -i "$archive" && dnf -q clean all && dnf -y install doca-ofed </dev/null; } || ended 1
	fi
else
	unpacked=$(mktemp -d "$work/unpacked.XXXXXX") || exit 1
	tar xf "$archive" -C "$unpacked" || ended 61
	{ cd "$unpacked/$name" && [ -x ./mlnxofedinstall ]; } || ended 62
	./mlnxofedinstall --force --add-kernel-support --without-fw-update </dev/null || ended $?
	cd /
	rm -rf -- "${work:?}"/*
fi
umask 022
echo "$version" >"$work/installed"
