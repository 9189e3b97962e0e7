#!/bin/sh -eu
# Runs inside the image: creates users and units, and the state of a guest that starts for the first time.
useradd -m -s /bin/bash ubuntu # sudo without a password, as in a cloud image
useradd -m -s /bin/bash ops    # sudo with a password
useradd -m -s /bin/bash plain  # no sudo
useradd -m -s /usr/bin/tcsh csher
useradd -m -s /usr/bin/fish fisher
useradd -m -s /bin/bash loud # prints at every login
printf 'ops:ops-secret\nplain:plain-secret\n' | chpasswd
for u in ubuntu csher fisher loud; do echo "$u ALL=(ALL) NOPASSWD:ALL"; done >/etc/sudoers.d/guests
echo 'ops ALL=(ALL) ALL' >>/etc/sudoers.d/guests
chmod 440 /etc/sudoers.d/guests
sed -i '1i echo "Welcome to the machine"\necho "== rdma =="\necho "[ 42 ] exit 1"' ~loud/.bashrc # ahead of its test for a terminal
# The kernel and the initial RAM disk are loaded from outside; renewing the one inside takes a minute without KVM.
sed -i 's/^update_initramfs=.*/update_initramfs=no/' /etc/initramfs-tools/update-initramfs.conf
localedef -i de_DE -f UTF-8 de_DE.UTF-8
chmod 600 /etc/netplan/*.yaml
chmod 755 /usr/local/sbin/guest-identity
rm -f /etc/ssh/ssh_host_* /etc/apt/sources.list.d/* /var/lib/dbus/machine-id
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /etc/update-motd.d
: >/etc/machine-id
: >/etc/resolv.conf
echo 'deb [trusted=yes] file:/srv/packages ./' >/etc/apt/sources.list
echo 'LABEL=guest / ext4 defaults,noatime 0 1' >/etc/fstab
systemctl enable systemd-networkd guest-identity.service guest-rxe.service ssh
systemctl set-default multi-user.target
# Without KVM these unneeded units take a sixth of the boot time.
systemctl mask man-db.timer systemd-binfmt.service systemd-update-utmp.service systemd-pstore.service kmod-static-nodes.service \
  modprobe@drm.service modprobe@efi_pstore.service modprobe@fuse.service modprobe@loop.service modprobe@dm_mod.service \
  sys-kernel-debug.mount sys-kernel-tracing.mount dev-mqueue.mount dev-hugepages.mount
systemctl mask apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  dpkg-db-backup.timer getty@tty1.service serial-getty@ttyS0.service
