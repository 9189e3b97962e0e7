#!/usr/bin/env bash
# driver.sh RELEASE DIR - builds VMware's vmw_pvrdma, which Debian does not include, for a Debian kernel.
set -euo pipefail

release=$1 dir=$2
headers=/usr/src/linux-headers-$release
[ -d "$headers" ] || { echo "no headers for $release: those of the mirror's kernel are wanted (apt-get install linux-headers-amd64)"; exit 1; }
source=$(ls -v /usr/src/linux-source-*.tar.xz | tail -n1)
mkdir -p "$dir/driver"
name=$(basename "$source" .tar.xz)
tar -C "$dir/driver" --strip-components=5 -xf "$source" "$name/drivers/infiniband/hw/vmw_pvrdma"
make -s -C "$headers" M="$dir/driver" CONFIG_INFINIBAND_VMWARE_PVRDMA=m modules
strip --strip-debug -o "$dir/vmw_pvrdma.ko" "$dir/driver/vmw_pvrdma.ko"
