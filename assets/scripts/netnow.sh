#!/bin/sh
# Prints which file decides for each network card now, "INTERFACE FILE": what systemd-networkd and NetworkManager have read.
# networkctl of older systemd (before about 245) has no --lines.
if systemctl is-active --quiet systemd-networkd; then
	for d in /sys/class/net/*; do
		n=${d##*/}
		[ -e "$d/device" ] && { networkctl --no-pager --lines=0 status "$n" 2>/dev/null || networkctl --no-pager status "$n"; } |
			sed -n "s|^ *Network File: /|$n /|p"
	done
fi
nmcli -t -f DEVICE,TYPE,FILENAME connection show --active |
	sed -n '/^[^:]*:vpn:/d; /^[^:]*:wireguard:/d; s|^\([^:]*\):[^:]*:/|\1 /|p' | sed 's|\\\(.\)|\1|g'
