#!/bin/sh
# Restores the name of a container image: image-back.sh ENGINE ID NAME. The image that has the name now is removed, unless it has
# other names or a container uses it. Exit code 44 means that the engine has no image ID.
engine=$1 id=$2 name=$3
now=$("$engine" images -q --no-trunc "$name" | head -n 1)
[ "$now" != "$id" ] || exit 0
"$engine" image inspect "$id" >/dev/null 2>&1 || exit 44
"$engine" tag "$id" "$name" || exit 1
[ -n "$now" ] || exit 0
names=$("$engine" image inspect --format '{{len .RepoTags}}' "$now") || exit 0
[ "$names" != 0 ] || "$engine" rmi "$now" >/dev/null 2>&1
exit 0
