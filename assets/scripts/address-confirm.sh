#!/bin/sh
# Ends the watch over a change of an address: address-confirm.sh DIR UNIT WORK. The process that removes the file "watching"
# decides, the watch or this script: a change whose undo has begun can no longer be confirmed. Nothing of the watch is left.
dir=$1 unit=$2 work=$3
rm "$dir/watching" 2>/dev/null || {
	echo 'the guest has already taken the change back' >&2
	exit 1
}
systemctl stop "$unit" 2>/dev/null
rm -rf -- "$dir"
rmdir "$work" 2>/dev/null || :
