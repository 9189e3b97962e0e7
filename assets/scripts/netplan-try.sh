#!/bin/sh
# Lets netplan generate in a scratch directory from copies of this guest's files: netplan-try.sh [FILE CONTENT]. FILE is added to them.
# Prints "exit CODE", what netplan says, and the files that it writes, as dump.sh does, with relative paths. Nothing is left, also if
# nobody reads that any more: it is printed when the directory is gone.
command -v netplan >/dev/null 2>&1 || exit 0
umask 077
# The directory is named after its process. One whose process was killed is removed here.
for root in /run/rdma-setup-try.*; do
	kill -0 "${root##*.}" 2>/dev/null || rm -rf -- "$root"
done
root=/run/rdma-setup-try.$$
mkdir "$root" || exit 1
trap 'rm -rf -- "$root"' EXIT
trap 'exit 143' HUP INT TERM PIPE
for d in lib/netplan run/netplan etc/netplan; do
	mkdir -p "$root/$d"
	for f in "/$d"/*.yaml; do
		if [ -f "$f" ]; then cp -p "$f" "$root/$d/"; elif [ -L "$f" ]; then cp -P "$f" "$root/$d/"; fi
	done
done
if [ -n "$1" ]; then printf %s "$2" >"$root$1"; fi
said=$(netplan generate --root-dir "$root" 2>&1)
code=$?
cd "$root" || exit 1
{
	echo "exit $code"
	printf '%s\n' "$said" | sed "s|$root||g"
	for f in run/systemd/network/* run/NetworkManager/system-connections/* run/NetworkManager/conf.d/* run/udev/rules.d/*; do
		[ -f "$f" ] || continue
		echo "file $(stat -L -c '%a|%u:%g|%s' "$f")|$f"
		cat "$f"
		echo
	done
} >"$root/said"
{ cd / && rm -rf -- "$root"; cat; } <"$root/said"
