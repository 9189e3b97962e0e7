#!/bin/sh
# Brings the port of an RDMA device up, in steps; each is tried only if the previous one did not help:
# port.sh DEVICE INTERFACE TRIES [MODULE]. It waits TRIES seconds after each, and loads MODULE again in the last.
device=$1 nic=$2 tries=$3 module=$4
active() {
	n=0
	while :; do
		for f in "/sys/class/infiniband/$device/ports/1/state" /sys/class/net/"$nic"/device/infiniband/*/ports/1/state; do
			x=
			[ -r "$f" ] && read -r x <"$f"
			case $x in *ACTIVE*) exit 0 ;; esac
		done
		n=$((n + 1))
		[ "$n" -gt "$tries" ] && return 1
		sleep 1
	done
}
if [ -n "$nic" ]; then
	echo step link-up
	ip link set dev "$nic" up && active
	echo step link-down-up
	ip link set dev "$nic" down && ip link set dev "$nic" up && active
fi
if [ -n "$module" ]; then
	echo step reload
	modprobe -r "$module" && modprobe "$module" && active
fi
read -r x <"/sys/class/net/$nic/carrier"
[ "$x" = 0 ] && echo no carrier
exit 1
