#!/usr/bin/env bash
# Signs the checksums of a release: sign.sh KEY [SHA256SUMS]. KEY is an SSH private key, or a public key whose private key an
# agent or a security key holds. Writes SHA256SUMS.sig beside the sums; a signature that is already there is kept.
# Source of the format and of the commands: ssh-keygen(1), -Y sign and -Y verify.
set -euo pipefail
key=${1:?an SSH key} sums=${2:-$(dirname "$0")/../../dist/SHA256SUMS}
[ -s "$sums" ] || { echo "sign.sh: $sums: no checksums. hint: run make dist first" >&2; exit 2; }
[ ! -e "$sums.sig" ] || { echo "sign.sh: $sums.sig exists already. hint: remove it to sign again" >&2; exit 2; }
(cd "$(dirname "$sums")" && sha256sum --quiet --strict -c "$(basename "$sums")") || { echo "sign.sh: a file is not the one that $sums names; nothing is signed" >&2; exit 1; }
ssh-keygen -q -Y sign -n rdma-setup-release -f "$key" "$sums"
