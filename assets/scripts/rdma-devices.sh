#!/bin/sh
# Prints what sysfs shows about each RDMA device: driver, firmware, state, traffic class, network interfaces, GIDs. One grep finds the
# GIDs, because soft-RoCE has a thousand slots for them; /dev/null makes it name the file of a single one.
for d in /sys/class/infiniband/*; do
	[ -d "$d" ] || continue
	p=$d/ports/1
	echo "device ${d##*/}"
	x=$(readlink -f "$d/device/driver") && echo "driver ${x##*/}"
	x=$(readlink -f "$d/device") && x=${x%/*} && case $x in *:*:*.*) echo "bridge ${x##*/}" ;; esac
	read -r x <"$d/fw_ver" && echo "fw_ver $x"
	for k in state rate link_layer; do read -r x <"$p/$k" && echo "$k $x"; done
	c=/sys/kernel/config/rdma_cm
	read -r x <"$d/tc/1/traffic_class" && echo "class $x"
	if [ -d $c ] && [ ! -d "$c/${d##*/}" ]; then
		echo "tos 0"
	elif read -r x <"$c/${d##*/}/ports/1/default_roce_tos"; then
		echo "tos $x"
	fi
	set -- /sys/devices/system/node/node[0-9]*
	if [ $# -gt 1 ] && read -r x <"$d/device/numa_node" && [ "$x" -ge 0 ] && read -r t <"/sys/devices/system/node/node$x/cpulist"; then
		# Each is tried: where a node has no memory, or its CPUs are not allowed here, it refuses, and no test would run.
		if numactl --cpunodebind="$x" --preferred="$x" true >/dev/null 2>&1; then
			echo "numa $x $t numactl"
		elif taskset -c "$t" true >/dev/null 2>&1; then
			echo "numa $x $t taskset"
		fi
	fi
	read -r x <"$d/parent" && echo "netdev $x"
	for n in "$d"/device/net/*; do [ -e "$n" ] && echo "netdev ${n##*/}"; done
	grep -v '^0000:0000:0000:0000:0000:0000:0000:0000$' "$p"/gids/* /dev/null | while read -r x; do
		x=${x#"$p/gids/"} t='' v=''
		i=${x%%:*}
		read -r t <"$p/gid_attrs/types/$i"
		read -r v <"$p/gid_attrs/ndevs/$i"
		echo "gid $i|${x#*:}|$t|$v"
	done
	x=$(readlink -f "$d/device") && for n in "${x%.*}".0/net/*; do [ -e "$n" ] && echo "netdev ${n##*/}"; done
done
