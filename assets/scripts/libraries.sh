#!/bin/sh
# Prints which verbs libraries a container has; runs inside it. That NGC's images keep the packages of MLNX_OFED in
# /opt/mellanox says nothing where others are installed: an image that was made fit for PVRDMA keeps them too. A provider is
# its library and the file that names it, which outlives the package.
v=$(dpkg-query -W -f "\${Version}" libibverbs1) || v=$(rpm -q --qf "%{VERSION}-%{RELEASE}" libibverbs) || v=
[ -z "$v" ] || echo "libibverbs $v"
if command -v ofed_info || [ -e /opt/mellanox/DEBS ]; then echo mofed; fi
for f in /usr/lib/*/libibverbs/libvmw_pvrdma-*.so /usr/lib64/libibverbs/libvmw_pvrdma-*.so /usr/lib/libibverbs/libvmw_pvrdma-*.so; do
	[ ! -e "$f" ] || [ ! -e /etc/libibverbs.d/vmw_pvrdma.driver ] || echo pvrdma
done
