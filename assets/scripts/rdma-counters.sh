#!/bin/sh
# Prints the counters of an RDMA device and of its interface, "name value" on a line: rdma-counters.sh DEVICE. An interface
# that does not count for each priority prints none of those.
port=/sys/class/infiniband/$1/ports/1
for file in "$port"/hw_counters/* "$port"/counters/port_*_data; do
	[ -r "$file" ] && read -r value <"$file" && echo "${file##*/} $value"
done
read -r net <"$port/gid_attrs/ndevs/0" && ethtool -S "$net" 2>/dev/null | sed -n 's/^ *\([a-z0-9_]*\): \([0-9]*\)$/\1 \2/p' | grep -E '^[rt]x_(prio[0-7]_|discards|out_of_buffer|ecn_mark)'
true
