#!/bin/sh
# Builds a container image from a Dockerfile in base64, which its label keeps: image-build.sh ENGINE LABEL NAME BASE64
engine=$1 label=$2 name=$3 text=$4
dir=$(mktemp -d "${0%/*}/image.XXXXXX") || exit 1
set --
# podman's own format does not support SHELL.
if [ "$engine" = podman ]; then set -- --format docker; fi
echo "$text" | base64 -d >"$dir/Dockerfile" && "$engine" build "$@" --label "$label=$text" -t "$name" "$dir" 2>&1
status=$?
rm -rf "$dir"
exit "$status"
