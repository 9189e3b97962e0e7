#!/bin/sh
# Pings an address: how many small pings are lost, and the first large size that passes unfragmented.
#
#   ping.sh COUNT ADDRESS BYTES...
count=$1 address=$2
shift 2
ping -n -q -c "$count" -i 0.2 -W 1 "$address"
for bytes; do
	if ping -n -q -c 1 -W 1 -M "do" -s "$bytes" "$address" >/dev/null 2>&1; then
		echo "payload $bytes"
		break
	fi
done
ip neigh show "$address"
