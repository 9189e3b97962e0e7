#!/bin/sh
# Undoes a change of an address unless it is confirmed in time: address-watch.sh PID DIR WORK SECONDS. While the process PID, which
# makes the change, runs, the time does not count, for 240 seconds at most. The process that removes the file "watching" decides,
# this script or the one that confirms. DIR/back undoes the change and removes "undoing".
pid=$1 dir=$2 work=$3 seconds=$4
echo $$ >"$dir/pid"
i=0 all=0
while [ "$i" -lt "$seconds" ] && [ -e "$dir/watching" ]; do
	sleep 1
	i=$((i + 1)) all=$((all + 1))
	[ "$all" -gt 240 ] || ! kill -0 "$pid" 2>/dev/null || i=0
done
! mv "$dir/watching" "$dir/undoing" 2>/dev/null || sh "$dir/back"
i=0
while [ "$i" -lt 240 ] && [ -e "$dir/undoing" ]; do
	sleep 1
	i=$((i + 1))
done
[ ! -e "$dir/undoing" ] || sh "$dir/back" # who began to undo it has been ended
rm -rf -- "$dir"
rmdir "$work" 2>/dev/null || : # systemd keeps a unit that failed
