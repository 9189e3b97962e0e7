#!/bin/sh
# Sets how a port that this guest owns treats priorities: qos.sh MAC TRUST PFC DSCP PRIORITY ECN. A change of PFC takes the link
# down for a moment (Linux, mlx5 en_dcbnl.c): the script waits until it is up again. The settings are lost at a reboot.
#
#   TRUST     dscp or pcp
#   PFC       0 or 1 for each priority: 0,0,0,1,0,0,0,0
#   DSCP      is mapped to PRIORITY; -: not listed, if DSCP is trusted
#   ECN       3:1 or 3:0, on or off in a priority; -: unchanged
mac=$1 trust=$2 pfc=$3 dscp=$4 prio=$5 ecn=$6
i=0 dev=
while [ -z "$dev" ]; do
	for n in /sys/class/net/*; do
		[ -e "$n/device" ] && [ -e "$n/address" ] && [ "$(cat "$n/address")" = "$mac" ] && dev=${n##*/}
	done
	[ -n "$dev" ] || [ $i -ge 20 ] && break
	i=$((i + 1))
	sleep 1
done
[ -n "$dev" ] || {
	echo "no interface has $mac" >&2
	exit 1
}
state() { cat "/sys/class/net/$dev/operstate"; }
up=$(state)
if [ "$ecn" != - ]; then
	for f in "/sys/class/net/$dev/ecn/roce_np/enable/${ecn%:*}" "/sys/class/net/$dev/ecn/roce_rp/enable/${ecn%:*}"; do
		[ ! -e "$f" ] || echo "${ecn#*:}" >"$f" || exit 1
	done
fi
if command -v mlnx_qos >/dev/null 2>&1; then
	mlnx_qos -i "$dev" --trust="$trust" >/dev/null || exit 1
	if [ "$trust" = dscp ] && [ "$prio" != - ]; then mlnx_qos -i "$dev" --dscp2prio="set,$dscp,$prio" >/dev/null || exit 1; fi
	mlnx_qos -i "$dev" --pfc="$pfc" >/dev/null || exit 1
elif command -v dcb >/dev/null 2>&1; then
	if [ "$trust" = pcp ]; then
		dcb app flush dev "$dev" dscp-prio || exit 1
	elif [ "$prio" = - ]; then
		for p in 0 1 2 3 4 5 6 7; do dcb app del dev "$dev" dscp-prio "$dscp:$p" 2>/dev/null; done
	else
		dcb app replace dev "$dev" dscp-prio "$dscp:$prio" || exit 1
	fi
	map='' p=0
	for on in $(echo "$pfc" | tr ',' ' '); do
		case $on in 1) map="$map $p:on" ;; *) map="$map $p:off" ;; esac
		p=$((p + 1))
	done
	# shellcheck disable=SC2086 # one argument for each priority
	dcb pfc set dev "$dev" prio-pfc $map || exit 1
else
	echo "neither mlnx_qos nor dcb is there" >&2
	exit 1
fi
i=0
while [ "$up" = up ] && [ "$(state)" != up ] && [ $i -lt 30 ]; do
	i=$((i + 1))
	sleep 1
done
