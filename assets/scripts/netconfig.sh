#!/bin/sh
# Prints which tools configure the network of this guest, one per line.
command -v netplan >/dev/null && echo netplan
ls /etc/netplan/*.yaml >/dev/null && echo netplan-files
command -v nmcli >/dev/null && echo nmcli
command -v ifup >/dev/null && {
	echo ifup
	case $(ifup --version) in *'version '[0-9]*) ;; *) echo other-ifup ;; esac
}
# shellcheck disable=SC2046 # two words
set -- $(systemctl is-active NetworkManager systemd-networkd)
case $1 in active | activating | reloading | refreshing) echo NetworkManager ;; esac
case $2 in active | reloading | refreshing) echo systemd-networkd ;; esac
case $(systemctl is-enabled systemd-networkd) in masked* | not-found) echo no-networkd ;; esac
[ -d /etc/sysconfig/network-scripts ] && echo network-scripts
