# What the programs do with the files of a layout: one line per fact, for TestE2ELayouts.
cp -a /etc/network /etc/network.start
cp -a /etc/NetworkManager /etc/NetworkManager.start
: >/laid
echo 0123456789abcdef0123456789abcdef >/etc/machine-id # DHCP has an identifier made of it

stop() { for p in $pids; do kill "$p" 2>/dev/null && wait "$p" 2>/dev/null; done; pids=''; }
fresh() { # removes what the layout before has left
	stop
	while read -r f; do rm -rf "$f"; done </laid
	: >/laid
	rm -rf /run/systemd/network /run/systemd/netif /run/NetworkManager /run/udev /run/network /run/netplan /var/lib/NetworkManager /etc/network /etc/NetworkManager
	cp -a /etc/network.start /etc/network
	cp -a /etc/NetworkManager.start /etc/NetworkManager
	printf '[main]\nno-auto-default=*\n[device-switch]\nmatch-device=interface-name:sw-*\nmanaged=0\n' >/etc/NetworkManager/conf.d/00-test.conf
	mkdir -p /run/systemd/network /run/NetworkManager /run/network /run/udev /var/lib/NetworkManager
	for n in /sys/class/net/*; do ip link del "${n##*/}" 2>/dev/null; done
	:
}
wired() { # NAME MAC: a card with its cable
	ip link add "$1" address "$2" type veth peer name "sw-${1#en}" && ip link set "sw-${1#en}" up mtu 9216
}
put() { # PATH: a file of the layout
	mkdir -p "${1%/*}"
	cat >"$1"
	chmod "$2" "$1"
	echo "$1" >>/laid
}
mask() { # PATH: a file of the layout that hides others
	mkdir -p "${1%/*}"
	case $1 in
	*/NetworkManager/conf.d/*) : >"$1" ;; # with a link NetworkManager 1.42 does not start: "Not a regular file"
	*) ln -s /dev/null "$1" ;;
	esac
	echo "$1" >>/laid
}
settled() { # COMMAND: its output has not changed for two seconds
	was='' same=0
	for _ in $(seq 60); do
		is=$("$@" 2>&1)
		[ "$is" = "$was" ] && same=$((same + 1)) || same=0
		[ $same -ge 4 ] && break
		was=$is
		sleep 0.5
	done
}
dump() { for f in /run/systemd/network/*.network /run/systemd/network/*.link /run/NetworkManager/system-connections/* /run/NetworkManager/conf.d/*; do
	[ -f "$f" ] && printf 'generated %s %s\n' "$f" "$(base64 -w0 "$f")"
done; }
state() {
	for n in $links; do
		[ -e "/sys/class/net/$n" ] || continue
		echo "mtu $n $(cat "/sys/class/net/$n/mtu")"
		ip -o addr show dev "$n" scope global | awk -v n="$n" '{print "address", n, $4}'
	done
}
networkd() {
	# A veth has no permanent address.
	sed -i 's/^PermanentMACAddress=/MACAddress=/' /run/systemd/network/* 2>/dev/null
	for n in $cards; do
		grep -qs '^Driver=' /run/systemd/network/*.link && break # the driver is known to udev's daemon alone
		f=$(udevadm test-builtin net_setup_link "/sys/class/net/$n" 2>/dev/null | sed -n 's/^ID_NET_LINK_FILE=//p')
		echo "linkfile $n $f"
	done
	install -d -o systemd-network -g systemd-network /run/systemd/netif /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
	/lib/systemd/systemd-networkd >/turn/log 2>&1 &
	pids="$pids $!"
	until_true 120 networkd networkctl reload
	settled networkctl --no-pager --no-legend list
	for n in $links; do
		[ -e "/sys/class/net/$n" ] || continue
		f=$(sed -n 's/^NETWORK_FILE=//p' "/run/systemd/netif/links/$(cat "/sys/class/net/$n/ifindex")")
		echo "decides $n $f"
		grep -q '^ADMIN_STATE=unmanaged' "/run/systemd/netif/links/$(cat "/sys/class/net/$n/ifindex")" && echo "unmanaged $n"
	done
	state
	stop
}
manager() {
	find /etc/NetworkManager/system-connections -type f -exec chmod 600 {} +
	NetworkManager --no-daemon >/turn/log 2>&1 &
	pids="$pids $!"
	until_true 120 NetworkManager nmcli -t general status
	settled nmcli -t -f DEVICE,STATE,CONNECTION device
	nmcli -t -f DEVICE,FILENAME connection show --active | while IFS=: read -r n f; do echo "decides $n $f"; done
	nmcli -t -f DEVICE,STATE device | sed -n 's/^\(.*\):unmanaged$/unmanaged \1/p'
	state
	stop
}
netplanned() {
	said=$(netplan generate 2>&1)
	code=$?
	echo "exit $code"
	printf '%s\n' "$said" | sed 's/^/said /'
	dump
	[ $code != 0 ] || { # in a scratch directory it writes the same
		sh /turn/try >/tried
		for f in /run/systemd/network/*.network /run/systemd/network/*.link /run/NetworkManager/system-connections/*; do
			[ ! -f "$f" ] || cut -d'|' -f3- /tried | grep -qxF "$(stat -c %s "$f")|${f#/}" || echo "exit $f is another one: $(grep '^file' /tried)"
		done
	}
	[ -z "$(ls /run/systemd/network/*.network /etc/systemd/network/*.network 2>/dev/null)" ] || networkd
	[ -z "$(ls /run/NetworkManager/system-connections/* /etc/NetworkManager/system-connections/* 2>/dev/null)" ] || manager
}
interfaces() {
	said=$(ifup --no-act --verbose -a 2>&1 && ifup --no-act --verbose --allow=hotplug -a 2>&1)
	echo "exit $?"
	printf '%s\n' "$said" | sed 's/^/said /'
}
