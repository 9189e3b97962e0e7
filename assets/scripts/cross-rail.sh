#!/bin/sh
# Tests whether an interface of another rail can be reached in the network of an RDMA port, by ARP requests from 0.0.0.0 (RFC 5227):
# neither routes nor rp_filter of either end affect the answers.
#
#   cross-rail.sh DEVICE GID_INDEX ADDRESS MAC
#
# Linux answers for each of its addresses on every interface (arp_ignore 0 in the kernel's ip-sysctl.rst): the peer's interface on
# the own rail answers too, with its own MAC. Only an answer with the MAC of the interface that has ADDRESS counts.
#
# Prints "answered", "silent", or "untried" and why.
netdev=$(cat "/sys/class/infiniband/$1/ports/1/gid_attrs/ndevs/$2" 2>/dev/null)
if [ -z "$netdev" ]; then
	echo "untried no interface is known for $1"
elif ! command -v arping >/dev/null 2>&1; then
	echo "untried arping (iputils) is not installed"
else
	others=silent
	said=$(arping -s 0.0.0.0 -b -c 4 -w 2 -I "$netdev" "$3" 2>&1)
	case $said in
	*" from 0.0.0.0 "*) ;;
	*) # this arping puts the port's own address there: -D does not, but ends at the first answer
		others="untried another interface of the VM answered first, and this arping shows no second answer"
		said=$(arping -D -c 2 -w 3 -I "$netdev" "$3" 2>&1)
		;;
	esac
	case $(echo "$said" | tr '[:upper:]' '[:lower:]') in
	*"reply from $3 [$4]"*) echo answered ;;
	*"reply from"*) echo "$others" ;;
	*"received 0 response"*) echo silent ;;
	*) echo "untried $said" ;;
	esac
fi
