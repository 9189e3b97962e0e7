#!/bin/sh
# Prints which file decides for each network card now, "INTERFACE FILE": what systemd-networkd and NetworkManager have read.
if systemctl is-active --quiet systemd-networkd; then
	for d in /sys/class/net/*; do
		[ -e "$d/device" ] && networkctl --no-pager --lines=0 status "${d##*/}" | sed -n "s|^ *Network File: /|${d##*/} /|p"
	done
fi
nmcli -t -f DEVICE,FILENAME connection show --active | sed -n 's|^\([^:]*\):/|\1 /|p' | sed 's|\\\(.\)|\1|g'
