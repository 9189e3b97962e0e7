#!/bin/sh
# enter.sh ROOT WORK - in namespaces of its own: runs WORK/turn/main on ROOT, which stays as it is. A veth pair plays the
# adapter and its switch.
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$2/layer"
r=$2/layer/root
mkdir "$r" "$2/layer/up" "$2/layer/work"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/layer/up,workdir=$2/layer/work" "$r"
mount -t proc proc "$r/proc"
mount -t sysfs -o ro sysfs "$r/sys" # NetworkManager and networkd wait for udev where they could write it
mount -t tmpfs tmpfs "$r/run"
mount -t tmpfs tmpfs "$r/dev"
for n in null zero random urandom; do
	: >"$r/dev/$n"
	mount --bind "/dev/$n" "$r/dev/$n"
done
cp -r "$2/turn" "$r/turn"
exec chroot "$r" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin /bin/sh /turn/main
