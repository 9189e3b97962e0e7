#!/usr/bin/env bash
# root.sh OUT - makes the directory OUT the root of a Debian with everything that configures networks.
set -euo pipefail
suite=${NETWORK_SUITE:-bookworm}
exec mmdebstrap --quiet --mode=root --variant=minbase \
  --include=systemd,udev,dbus,network-manager,libpam-systemd,netplan.io,ifupdown,iproute2,procps,kmod \
  --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  "$suite" "$1" http://deb.debian.org/debian
