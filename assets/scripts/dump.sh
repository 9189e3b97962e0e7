#!/bin/sh
# Prints files: dump.sh FILE... Each has a head line "file MODE|OWNER|SIZE|PATH", then its bytes and a newline. Anything that is not
# a readable file is skipped.
for f in "$@"; do
	if [ ! -f "$f" ] || [ ! -r "$f" ]; then continue; fi
	echo "file $(stat -L -c '%a|%u:%g|%s' "$f")|$f"
	cat "$f"
	echo
done
