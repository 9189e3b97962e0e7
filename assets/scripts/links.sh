#!/bin/sh
# Prints a line for each network interface: NAME|MAC|MTU|FLAGS|STATE|device or -|MASTER or -|DRIVER|ID_PATH|DEVTYPE. The last three are
# empty if there are none.
for d in /sys/class/net/*; do
	[ -e "$d/address" ] || continue
	n=${d##*/} a='' m='' f='' o=''
	read -r a <"$d/address"
	read -r m <"$d/mtu"
	read -r f <"$d/flags"
	read -r o <"$d/operstate"
	p=- v='' i=''
	[ -e "$d/device" ] && {
		p=device
		v=$(readlink "$d/device/driver")
		i=$(readlink "$d/device")
		case ${i##*/} in ????:??:??.?) i=pci-${i##*/} ;; *) i='' ;; esac
	}
	s=-
	[ -e "$d/master" ] && {
		s=$(readlink -f "$d/master")
		s=${s##*/}
	}
	echo "$n|$a|$m|$f|$o|$p|$s|${v##*/}|$i|$(sed -n 's/^DEVTYPE=//p' "$d/uevent")"
done
