#!/bin/sh
# Takes a change of an address back: address-back.sh DIR FILE BESIDE INTERFACE ADDRESS ACTIVATE. BESIDE begins the names of
# what an interrupted write leaves; ADDRESS is empty where none was given; ACTIVATE is a script.
dir=$1 file=$2 beside=$3 nic=$4 address=$5 activate=$6
rm -f -- "$beside"??????
if [ -e "$dir/old" ]; then cp -p "$dir/old" "$file"; else rm -f -- "$file"; fi
(eval "$activate")
[ -z "$address" ] || ip addr del "$address" dev "$nic" 2>/dev/null || :
[ -s "$dir/mtu" ] && ip link set dev "$nic" mtu "$(cat "$dir/mtu")"
[ -s "$dir/flags" ] && [ $(($(cat "$dir/flags") & 1)) = 0 ] && ip link set dev "$nic" down
rm -f "$dir/undoing"
