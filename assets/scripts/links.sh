#!/bin/sh
# Prints a line for each network interface: NAME|MAC|MTU|FLAGS|STATE|device or -|MASTER or -
for d in /sys/class/net/*; do
	[ -e "$d/address" ] || continue
	n=${d##*/} a='' m='' f='' o=''
	read -r a <"$d/address"
	read -r m <"$d/mtu"
	read -r f <"$d/flags"
	read -r o <"$d/operstate"
	p=-
	[ -e "$d/device" ] && p=device
	s=-
	[ -e "$d/master" ] && {
		s=$(readlink -f "$d/master")
		s=${s##*/}
	}
	echo "$n|$a|$m|$f|$o|$p|$s"
done
