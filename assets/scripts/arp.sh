#!/bin/sh
# Prints a line for each network interface: NAME arp_ignore arp_announce rp_filter. It uses cat, because dash's read reads one byte
# at a time, and the kernel returns a number below /proc/sys only to the first read (proc_dointvec).
for d in /proc/sys/net/ipv4/conf/*; do
	# shellcheck disable=SC2046 # words
	echo "${d##*/}" $(cat "$d/arp_ignore" "$d/arp_announce" "$d/rp_filter")
done
