#!/bin/sh
# Prints how the ports of cards that this guest owns treat priorities, as mlnx_qos or dcb shows it, and the priorities with ECN. For
# a VF it prints only the address: its port belongs to the host. "no tool": neither tool is installed.
command -v mlnx_qos >/dev/null || command -v dcb >/dev/null || echo "no tool"
for n in /sys/class/net/*; do
	case $(readlink "$n/device/driver") in */mlx5_core) ;; *) continue ;; esac
	read -r mac <"$n/address" && echo "port $mac"
	dev=${n##*/}
	if command -v mlnx_qos >/dev/null; then
		mlnx_qos -i "$dev"
	elif command -v dcb >/dev/null; then
		dcb pfc show dev "$dev" prio-pfc && dcb -N app show dev "$dev" dscp-prio && dcb buffer show dev "$dev" prio-buffer
	fi
	for f in "$n"/ecn/roce_[nr]p/enable/*; do
		[ -e "$f" ] && read -r x <"$f" && echo "ecn ${f##*/} $x"
	done
done
