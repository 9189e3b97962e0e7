#!/bin/sh
# Rebuilds the initial RAM disks that dracut makes, one for each installed kernel. Each is built beside the old one and then
# renamed: dracut itself removes an image that it cannot write completely, and a full /boot would leave a kernel without one.
# Images without a kernel of their name (rescue, kdump) stay as they are. dracut(8): dracut [OPTION...] [<image> [<kernel version>]].
rm -f /boot/initramfs-*.img.rdma_setup-new
any=
for i in /boot/initramfs-*.img; do
	k=${i#/boot/initramfs-}
	k=${k%.img}
	if [ ! -f "$i" ] || [ ! -d "/lib/modules/$k" ]; then continue; fi
	any=yes
	if ! dracut --force "$i.rdma_setup-new" "$k" || ! mv -f "$i.rdma_setup-new" "$i"; then
		rm -f "$i.rdma_setup-new"
		exit 1
	fi
done
[ -n "$any" ] || {
	echo "/boot has no initramfs-KERNEL.img of an installed kernel" >&2
	exit 1
}
