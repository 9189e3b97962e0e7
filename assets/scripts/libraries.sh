#!/bin/sh
# Prints which verbs libraries a container has; runs inside it. NGC's images keep the packages of MLNX_OFED in /opt/mellanox; this
# proves nothing if other packages are installed, because an image that was adapted for PVRDMA keeps them too. A provider consists
# of its library and the file that names it, which is left when the package is removed.
v=$(dpkg-query -W -f "\${Version}" libibverbs1) || v=$(rpm -q --qf "%{VERSION}-%{RELEASE}" libibverbs) || v=
[ -z "$v" ] || echo "libibverbs $v"
if command -v ofed_info || [ -e /opt/mellanox/DEBS ]; then echo mofed; fi
for f in /usr/lib/*/libibverbs/libvmw_pvrdma-*.so /usr/lib64/libibverbs/libvmw_pvrdma-*.so /usr/lib/libibverbs/libvmw_pvrdma-*.so; do
	[ ! -e "$f" ] || [ ! -e /etc/libibverbs.d/vmw_pvrdma.driver ] || echo pvrdma
done
