#!/bin/sh
# Marks the traffic of the RDMA device of an interface: traffic-class.sh MAC CLASS. It sets the default of rdma_cm (configfs, in
# every kernel since 4.14, as cma_roce_tos does), and with MLNX_OFED also the class of all traffic of the device. Both are lost at a
# reboot.
i=0 dev=
while :; do
	for d in /sys/class/infiniband/*; do
		for n in "$d"/device/net/*; do
			[ -e "$n/address" ] && [ "$(cat "$n/address")" = "$1" ] && dev=${d##*/}
		done
	done
	if [ -n "$dev" ] || [ $i -ge 20 ]; then break; fi
	i=$((i + 1))
	sleep 1
done
[ -n "$dev" ] || {
	echo "no RDMA device belongs to $1" >&2
	exit 1
}
c=/sys/kernel/config/rdma_cm t=/sys/class/infiniband/$dev/tc/1/traffic_class written=
if [ -d $c ]; then
	[ -d "$c/$dev" ] || mkdir "$c/$dev" || exit 1
	for p in "$c/$dev"/ports/*; do
		echo "$2" >"$p/default_roce_tos" || exit 1
	done
	written=1
fi
if [ -e "$t" ]; then
	echo "$2" >"$t" || exit 1
	written=1
fi
[ -n "$written" ] || {
	echo "neither $c nor $t is there" >&2
	exit 1
}
