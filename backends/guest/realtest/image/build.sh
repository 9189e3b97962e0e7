#!/usr/bin/env bash
# build.sh OUT - creates root.ext4, vmlinux and initrd of a Debian guest, rdma.ext4 with the packages for RDMA installed, mpi.ext4
# with Open MPI and a compiler, and verbs.so for its QEMU, in the directory OUT, only from packages.
set -euo pipefail

out=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
. /etc/os-release
suite=${VERSION_CODENAME:?}
for sources in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do [ -s "$sources" ] && break; done
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root

base=(linux-image-amd64 systemd-sysv udev dbus openssh-server sudo iproute2 iputils-ping iputils-arping kmod procps
  netplan.io ethtool pciutils initramfs-tools zstd netbase locales nftables tcsh fish)
# The tests install packages in the guests from a repository inside them, which also contains all dependencies.
rdma=(rdma-core ibverbs-providers ibverbs-utils rdmacm-utils infiniband-diags perftest)
mpi=(openmpi-bin libopenmpi-dev gcc libc6-dev)
docker=(docker.io apparmor)

# Drivers without a device in the guests are most of the kernel package.
excluded=()
for d in drivers/{gpu,media,staging,iio,usb,isdn,bluetooth,input,hwmon,mtd,video,platform,leds,nfc,comedi,w1,scsi,md,mmc} \
  drivers/{thunderbolt,net/wireless,net/ethernet/{broadcom,chelsio,qlogic,cavium,intel,sfc,marvell,netronome}} \
  sound fs/{btrfs,xfs,ocfs2,f2fs,nfs,nfsd,ceph,smb,gfs2,jfs} net/{bluetooth,mac80211,wireless,ceph,tipc,batman-adv}; do
  excluded+=(--dpkgopt="path-exclude=/lib/modules/*/kernel/$d/*")
done

mmdebstrap --quiet --variant=minbase --include="$(IFS=,; echo "${base[*]}")" "${excluded[@]}" \
  --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Retries "3"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-include=/usr/share/locale/de/*' \
  --extract-hook='mkdir -p "$1/etc/initramfs-tools/conf.d"; printf "MODULES=list\nCOMPRESS=zstd\nCOMPRESSLEVEL=1\n" >"$1/etc/initramfs-tools/conf.d/guest"; printf "virtio_pci\nvirtio_blk\next4\ncrc32c_generic\n" >"$1/etc/initramfs-tools/modules"' \
  --customize-hook="mkdir -p '$root/srv/packages'" \
  --customize-hook="APT_CONFIG=\$MMDEBSTRAP_APT_CONFIG apt-get -qq -y --no-install-recommends --download-only -o Dir::Cache::Archives='$root/srv/packages' install ${rdma[*]} ${mpi[*]} ${docker[*]}" \
  "$suite" "$root" "$sources" >"$out/build.log" 2>&1 || { tail -n 40 "$out/build.log" >&2; echo "build.sh: mmdebstrap failed: is a Debian mirror within reach?" >&2; exit 1; }

release=$(basename "$root"/lib/modules/*)
"$here/driver.sh" "$release" "$work" >>"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log" >&2; echo "build.sh: vmw_pvrdma could not be built for $release" >&2; exit 1; }
gcc -O2 -shared -fPIC -o "$out/verbs.so" "$here/verbs.c" -lpthread >>"$out/build.log" 2>&1
install -Dm644 "$work/vmw_pvrdma.ko" "$root/lib/modules/$release/extra/vmw_pvrdma.ko"
chroot "$root" depmod "$release"

# The ib_send_bw of an older Debian uses an older protocol. Mirrors remove old releases one day: the tests then report it.
older=perftest_4.4+0.37-1_amd64.deb
digest=f730233a3428d1c334d378cd186959a07391c47a02eda82ab6fb379013d5504f
for mirror in http://deb.debian.org/debian http://archive.debian.org/debian; do
  if /usr/lib/apt/apt-helper -o APT::Sandbox::User=root -o Acquire::Retries=2 download-file "$mirror/pool/main/p/perftest/$older" "$work/$older" "SHA256:$digest" >>"$out/build.log" 2>&1; then
    dpkg-deb -x "$work/$older" "$work/older"
    install -Dm755 "$work/older/usr/bin/ib_send_bw" "$root/srv/older/ib_send_bw"
    break
  fi
done

rm -rf "$root/srv/packages/partial" "$root/srv/packages/lock"
(cd "$root/srv/packages" && for deb in *.deb; do
  dpkg-deb -f "$deb"
  printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)"
done >Packages)

cp -r "$here/files/." "$root/"
install -m755 "$here/customize.sh" "$root/customize.sh"
chroot "$root" /customize.sh >>"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log" >&2; echo "build.sh: customize.sh failed" >&2; exit 1; }
rm "$root/customize.sh"

# An unpacked kernel starts by PVH, which saves the time to unpack it without KVM.
kernel=$root/boot/vmlinuz-$release
offset=$(LC_ALL=C grep -aboP '\xFD7zXZ\x00' "$kernel" | cut -d: -f1 | sed -n 1p || :)
{ tail -c "+$((offset + 1))" "$kernel" | xz -qdc >"$out/vmlinux" 2>/dev/null; } || : # the kernel goes on after its packed part
grep -aqm1 '^.ELF' "$out/vmlinux" || cp "$kernel" "$out/vmlinux"
cp "$root/boot/initrd.img-$release" "$out/initrd"
mke2fs -q -F -t ext4 -L guest -d "$root" "$out/root.ext4" 2G

chroot "$root" sh -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@"' sh "${rdma[@]}" \
  >>"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log" >&2; echo "build.sh: the packages for RDMA do not install" >&2; exit 1; }
mke2fs -q -F -t ext4 -L guest -d "$root" "$out/rdma.ext4" 2G

chroot "$root" sh -c 'DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@"' sh "${mpi[@]}" \
  >>"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log" >&2; echo "build.sh: Open MPI does not install" >&2; exit 1; }
rm -rf "$root/srv" "$root/boot" "$root"/lib/modules "$root"/var/cache/apt/*
mke2fs -q -F -t ext4 -L mpi -d "$root" "$out/mpi.ext4" 2G
