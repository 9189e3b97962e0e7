#!/usr/bin/env bash
# Installs what the tests on real kernels need; with "latest", in the version that the mirror has now.
set -euo pipefail

packages=(qemu-system-x86 qemu-utils mmdebstrap e2fsprogs xz-utils openssh-server chromium prometheus prometheus-node-exporter systemd gcc make libc6-dev
  linux-headers-amd64 linux-source libibverbs-dev libibumad-dev)
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  sudo -n true 2>/dev/null || { echo "needs.sh: neither root nor sudo without a password: cannot install ${packages[*]}" >&2; exit 1; }
  as_root=(sudo -n)
fi

missing() {
  local p
  for p in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || return 0
  done
  return 1
}
if [ "${1:-}" = latest ] || missing; then
  "${as_root[@]}" apt-get update -qq || :
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 --no-install-recommends "${packages[@]}" >/dev/null || ! missing || {
    echo "needs.sh: apt-get could not install ${packages[*]}: is a Debian mirror within reach?" >&2
    exit 1
  }
fi
