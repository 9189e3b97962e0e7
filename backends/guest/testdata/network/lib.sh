# What the scripts of the tests share.
plug() { ip link add ens224f0 address 00:50:56:9a:0b:0c type veth peer name sw0 && ip link set sw0 up mtu 9216; }
until_true() { # LIMIT WHAT COMMAND...
	limit=$1 what=$2
	shift 2
	while ! "$@" >/dev/null 2>&1; do
		limit=$((limit - 1))
		[ $limit -gt 0 ] || { echo "still not: $what" >&2; exit 1; }
		sleep 0.5
	done
}
has() { ip -o addr show dev ens224f0 | grep -qF " $1 " && [ "$(cat /sys/class/net/ens224f0/mtu)" = "$2" ]; }
# networkd, which is told to reload and to reconfigure, takes what it has just given away for a moment.
routed() { has "$@" && ip route show dev ens224f0 | grep -q "^192.168.60.0/24 " &&
	ip -4 rule show | grep -q 'from 192.168.60.21 lookup 5001' && ip route show table 5001 | grep -q '^192.168.60.0/24 dev ens224f0'; }
hasnt() { ! ip -o addr show dev ens224f0 | grep -qF " $1 "; }
show() { echo "$1"; ip -o addr show dev ens224f0; ip link show dev ens224f0; ip route show table all; ip rule; ip -6 route show default; }

mkdir -p /run/dbus /run/network
ip link set lo up
plug
dbus-daemon --system --fork
