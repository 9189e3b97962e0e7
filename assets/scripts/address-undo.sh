#!/bin/sh
# Undoes a change of an address that is not confirmed: address-undo.sh DIR. The process that removes the file "watching" decides; if the
# watch is faster, this script waits until it has undone the change.
dir=$1
! mv "$dir/watching" "$dir/undoing" 2>/dev/null || sh "$dir/back"
i=0
while [ -e "$dir/undoing" ] && [ $i -lt 240 ]; do
	sleep 1
	i=$((i + 1))
done
[ ! -e "$dir/undoing" ] || sh "$dir/back"
sh "$dir/end" 2>/dev/null || :
