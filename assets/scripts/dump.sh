#!/bin/sh
# Prints files: dump.sh FILE... Each has a head line "file MODE|OWNER|SIZE|PATH", then its bytes and a newline. Anything that is not
# a readable file is skipped, and a link to /dev/null is an empty file: with both, programs hide a file of the same name elsewhere.
for f in "$@"; do
	if [ -L "$f" ] && [ "$(readlink "$f")" = /dev/null ]; then printf 'file 777|0:0|0|%s\n\n' "$f"; fi
	if [ ! -f "$f" ] || [ ! -r "$f" ]; then continue; fi
	echo "file $(stat -L -c '%a|%u:%g|%s' "$f")|$f"
	cat "$f"
	echo
done
