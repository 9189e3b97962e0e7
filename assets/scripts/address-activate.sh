#!/bin/sh
# Activates the configuration files for one interface, as far as the system can do this for a single interface:
# address-activate.sh netplan|nm|networkd|ifupdown INTERFACE FILE UUID. UUID is that of the NetworkManager connection.
system=$1 nic=$2 file=$3 uuid=$4
limited() { if command -v timeout >/dev/null 2>&1; then timeout 60 "$@"; else "$@"; fi; }
case $system in
netplan)
	# netplan apply goes over every interface and restarts what runs them; networkd can be asked for the one, unless it is NetworkManager's.
	d=
	manager() { for f in /run/NetworkManager/system-connections/netplan-*rdma-setup-*; do [ ! -e "$f" ] || d=manager; done; }
	manager
	netplan generate || exit 1
	manager
	for f in /run/systemd/network/10-netplan-*.network; do [ -e "$f" ] && d=${d:-networkd}; done
	if [ "$d" = networkd ] && networkctl reload && { networkctl reconfigure "$nic" || [ ! -e "$file" ]; }; then
		:
	else
		limited netplan apply
	fi
	;;
nm) nmcli connection reload && { [ ! -e "$file" ] || limited nmcli --wait 30 connection up uuid "$uuid" ifname "$nic"; } ;;
networkd) { networkctl reload && networkctl reconfigure "$nic"; } || limited systemctl restart systemd-networkd ;;
*)
	{ ifdown "$nic" >/dev/null 2>&1 || :; }
	if [ -e "$file" ]; then limited ifup "$nic"; fi
	;;
esac
