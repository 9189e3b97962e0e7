#!/bin/sh
# Changes one interface's configuration: saves the file, starts the watch, writes, activates, and waits for the result.
# If anything fails after the file was written, the change is undone at once.
#   address-set.sh DIR WORK UNIT WATCH SECONDS BACK END ACTIVATE \
#     FILE BESIDE MODE OWNER CONTENT INTERFACE ADDRESS MTU STALE AGAIN DOWN SETTLE LOOKS RULE OLD
# WATCH, BACK, END and ACTIVATE are scripts; see address-watch.sh. With no MODE the file is removed. STALE are addresses to remove
# explicitly and AGAIN those to set again, because some systems leave them unchanged; the same applies to an MTU, which some apply
# only at boot. The interface must have ADDRESS (dhcp: any IPv4 address with a lifetime) and MTU in LOOKS reads, a second apart,
# within SETTLE seconds. RULE, "ADDRESS TABLE", names the rule of policy routing that must exist then, with a route through the
# interface; OLD are those to remove explicitly.
dir=$1 work=$2 unit=$3 watch=$4 seconds=$5 back=$6 end=$7 activate=$8
shift 8
file=$1 beside=$2 mode=$3 owner=$4 content=$5 nic=$6
shift 6
address=$1 mtu=$2 stale=$3 again=$4 down=$5 settle=$6 looks=$7 rule=$8 old=$9
sys=/sys/class/net/$nic

{ rm -rf -- "$dir" && mkdir -p "$dir" && chmod 700 "$dir"; } || exit 1
if [ -e "$file" ]; then cp -p "$file" "$dir/old" || exit 1; fi
for k in mtu flags; do cat "$sys/$k" >"$dir/$k"; done 2>/dev/null
ip -o addr show dev "$nic" >"$dir/addresses"
{ printf %s "$back" >"$dir/back" && printf %s "$end" >"$dir/end" && printf %s "$watch" >"$dir/watch" && : >"$dir/watching"; } || exit 1

# The watch waits as long as this script runs, and outlives this login.
if command -v systemd-run >/dev/null 2>&1 &&
	systemd-run --quiet --unit="$unit" /bin/sh "$dir/watch" $$ "$dir" "$work" "$seconds" >/dev/null 2>&1; then
	:
elif command -v setsid >/dev/null 2>&1; then
	setsid nohup /bin/sh "$dir/watch" $$ "$dir" "$work" "$seconds" >/dev/null 2>&1 </dev/null &
else
	nohup /bin/sh "$dir/watch" $$ "$dir" "$work" "$seconds" >/dev/null 2>&1 </dev/null &
fi

undo() {
	! mv "$dir/watching" "$dir/undoing" 2>/dev/null || sh "$dir/back"
	i=0
	while [ -e "$dir/undoing" ] && [ $i -lt 240 ]; do
		sleep 1
		i=$((i + 1))
	done
	[ ! -e "$dir/undoing" ] || sh "$dir/back"
	sh "$dir/end" 2>/dev/null # the watch has removed it if it was faster
	exit 1
}
has() {
	if [ "$1" = dhcp ]; then
		ip -o addr show dev "$nic" | grep -q ' inet .* dynamic'
	else
		ip -o addr show dev "$nic" | grep -qF " $1 "
	fi
}
routed() {
	[ -z "$rule" ] || {
		ip -4 rule show | sed 's/$/ /' | grep -qF "from ${rule% *} lookup ${rule#* } " && ip -4 route show table "${rule#* }" 2>/dev/null | grep -qF " dev $nic "
	}
}
write() {
	mkdir -p "${file%/*}" && t=$(mktemp "${beside}XXXXXX") && chmod "$mode" "$t" && chown "$owner" "$t" &&
		printf %s "$content" >"$t" && { sync "$t" 2>/dev/null || :; } && mv -f "$t" "$file"
}

if [ -n "$mode" ]; then
	write || undo
else
	rm -f -- "$file" "$beside"?????? || undo
fi
(eval "$activate") || undo

for a in $stale; do ip addr del "$a" dev "$nic" 2>/dev/null || :; done
# shellcheck disable=SC2086 # words
set -- $old
while [ $# -gt 1 ]; do
	ip rule del from "$1" table "$2" 2>/dev/null || :
	shift 2
done
if [ "$mtu" -gt 0 ] && [ "$(cat "$sys/mtu")" != "$mtu" ]; then ip link set dev "$nic" mtu "$mtu" || :; fi
for a in $again; do
	has "$a" || ip addr add "$a" dev "$nic" 2>/dev/null || :
done
if [ -n "$down" ]; then ip link set dev "$nic" down || :; fi
[ -n "$address" ] || exit 0

ip link set dev "$nic" up || :
i=0 seen=0
while :; do
	if has "$address" && [ "$(cat "$sys/mtu")" = "$mtu" ] && routed; then seen=$((seen + 1)); else seen=0; fi
	[ "$seen" -lt "$looks" ] || exit 0
	[ "$i" -lt "$settle" ] || break
	i=$((i + 1))
	sleep 1
done
why=
[ "$(cat "$sys/carrier" 2>/dev/null)" != 0 ] || why=', for its link has no carrier (is the adapter of the VM connected?)'
routed || why="$why, and no rule leads from ${rule% *} by table ${rule#* } out of it"
echo "$nic did not get its address and MTU$why: $(ip -o addr show dev "$nic" | tr '\n' ' ')" >&2
undo
