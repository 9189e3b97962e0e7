#!/bin/sh
# Prints a line for each network interface: NAME arp_ignore arp_announce rp_filter. cat, because dash's read takes a byte at a time, and
# the kernel gives a number below /proc/sys to the first read alone (proc_dointvec).
for d in /proc/sys/net/ipv4/conf/*; do
	# shellcheck disable=SC2046 # words
	echo "${d##*/}" $(cat "$d/arp_ignore" "$d/arp_announce" "$d/rp_filter")
done
