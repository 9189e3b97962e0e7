#!/usr/bin/env bash
# Makes dist/: archives, deb and rpm, SBOMs and checksums. The same commit and Go version give the same bytes.
# Called by `make dist` with GO and VERSION set. Windows is left out: the journal needs files that are replaced atomically.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${GO:=go}" "${VERSION:?}"
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
umask 022
rm -rf dist && mkdir -p dist/stage/man dist/stage/completions
stage=$PWD/dist/stage

build() { # OS ARCH FILE
  CGO_ENABLED=0 GOOS=$1 GOARCH=$2 $GO build -trimpath -buildvcs=false -gcflags=github.com/...=-l \
    -ldflags "-s -w -X github.com/rdma-setup/rdma-setup/ui/cmd.version=$VERSION" -o "$3" .
}

# pack FOLDER FILE: an archive with nothing of this machine in it.
pack() {
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$stage" -cf - "$1" | gzip -9n >"dist/$2"
}

build "$($GO env GOHOSTOS)" "$($GO env GOHOSTARCH)" "$stage/host"
"$stage/host" man --dir "$stage/man"
gzip -9n "$stage"/man/*.1
"$stage/host" completion bash >"$stage/completions/rdma-setup.bash"
"$stage/host" completion zsh >"$stage/completions/_rdma-setup"
"$stage/host" completion fish >"$stage/completions/rdma-setup.fish"
"$stage/host" version -o spdx >"dist/rdma-setup-$VERSION.spdx.json"

# The licences and notices of everything that is linked in, the standard library included, from the module cache.
notices() {
  printf 'rdma-setup contains the following third-party software.\n'
  printf '\n==== The Go standard library %s ====\n\n' "$($GO env GOVERSION)"
  cat "$($GO env GOROOT)/LICENSE"
  for os in linux darwin; do
    GOOS=$os CGO_ENABLED=0 $GO list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' .
  done | sort -u | while read -r path version dir; do
    [ -n "$path" ] || continue
    found=
    for file in "$dir"/*; do
      case ${file##*/} in
      [Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* | LICEN[CS]E* | COPYING* | NOTICE* | PATENTS*) [ -f "$file" ] || continue ;;
      *) continue ;;
      esac
      printf '\n==== %s %s: %s ====\n\n' "$path" "$version" "${file##*/}"
      cat "$file"
      found=1
    done
    [ -n "$found" ] || { echo "$path has no licence file" >&2; exit 1; }
  done
}
notices >"$stage/THIRD_PARTY_NOTICES"

cp --parents LICENSE assets/docs/*.md "$stage/" # the README links to them
sed '/^!\[/,/^$/d' README.md >"$stage/README.md" # without the pictures, which the packages do not contain
touch -d "@$SOURCE_DATE_EPOCH" "$stage"/assets/docs/* "$stage"/{README.md,LICENSE,THIRD_PARTY_NOTICES} "$stage"/man/* "$stage"/completions/* # packages keep the time of their files

mkdir -p "$stage/bin"
GOBIN="$stage/bin" GOFLAGS= $GO install "$nfpm"
for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
  os=${target%/*} arch=${target#*/}
  folder=rdma-setup-$VERSION-$os-$arch
  mkdir -p "$stage/$folder"
  build "$os" "$arch" "$stage/$folder/rdma-setup"
  cp -r "$stage/README.md" LICENSE "$stage/assets" "$stage/THIRD_PARTY_NOTICES" "$stage/man" "$stage/completions" "$stage/$folder/"
  pack "$folder" "$folder.tar.gz"
  if [ "$os" = linux ]; then
    cp "$stage/$folder/rdma-setup" "$stage/rdma-setup"
    touch -d "@$SOURCE_DATE_EPOCH" "$stage/rdma-setup"
    # A git description is no package version where a dash stands: 0.1.0-3-gabc becomes 0.1.0+3.gabc. A commit without a
    # tag comes before all versions, and after older commits, also if its hash begins with a digit: 0~20261128.165400.41baeb2.
    package=$(sed -E 's/^v//; s/^([^-]*)-/\1+/; s/-/./g; s/^([^0-9]|[0-9a-f]{7,40}(\+|$))/0~'"$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M%S)"'.\1/' <<<"$VERSION")
    for kind in deb rpm; do
      GOARCH=$arch VERSION=$package "$stage/bin/nfpm" package -f assets/dist/nfpm.yaml -p "$kind" -t dist/ >"$stage/nfpm.log" ||
        { cat "$stage/nfpm.log" >&2; exit 1; }
    done
  fi
done
rm -rf "$stage"
cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS
