#!/bin/sh
# Tests for each IPv4 address of an RDMA device whether another machine uses it too.
command -v arping >/dev/null && for d in /sys/class/infiniband/*; do
	[ -d "$d" ] || continue
	n=
	read -r n <"$d/ports/1/gid_attrs/ndevs/0" || continue
	for a in $(ip -4 -o addr show dev "$n" | awk '{print $4}'); do
		echo "address $n ${a%/*}"
		arping -D -c 1 -w 1 -I "$n" "${a%/*}"
	done
done
