#!/bin/sh
# Undoes a change of an address: address-back.sh DIR FILE BESIDE INTERFACE ADDRESS ACTIVATE RULE. BESIDE is the prefix of the names
# of files that an interrupted write leaves; ADDRESS is empty if none was set, dhcp if a server assigns it; ACTIVATE is a script;
# RULE is empty or "ADDRESS TABLE", a rule of policy routing.
dir=$1 file=$2 beside=$3 nic=$4 address=$5 activate=$6 rule=$7
rm -f -- "$beside"??????
if [ -e "$dir/old" ]; then cp -p "$dir/old" "$file"; else rm -f -- "$file"; fi
(eval "$activate")
if [ "$address" = dhcp ]; then
	for a in $(ip -o addr show dev "$nic" | sed -n 's/.* inet \([^ ]*\) .* dynamic.*/\1/p'); do
		grep -qF " $a " "$dir/addresses" || ip addr del "$a" dev "$nic" 2>/dev/null || :
	done
elif [ -n "$address" ]; then
	ip addr del "$address" dev "$nic" 2>/dev/null || :
fi
if [ -n "$rule" ]; then ip rule del from "${rule% *}" table "${rule#* }" 2>/dev/null || :; fi
[ -s "$dir/mtu" ] && ip link set dev "$nic" mtu "$(cat "$dir/mtu")"
[ -s "$dir/flags" ] && [ $(($(cat "$dir/flags") & 1)) = 0 ] && ip link set dev "$nic" down
rm -f "$dir/undoing"
