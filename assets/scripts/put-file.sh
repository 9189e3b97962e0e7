#!/bin/sh
# Writes a file atomically from standard input: put-file.sh PATH SIZE MODE OWNER. Temporary files of an interrupted write are
# removed first. Not every shell runs the trap of EXIT when a signal ends it.
rds_f=$1 rds_b=${1%/*}/.${1##*/}. rds_s=$2 rds_m=$3 rds_o=$4
rm -f "$rds_b"??????
rds_t=$(mktemp "${rds_b}XXXXXX") || exit 1
trap 'rm -f "$rds_t"' EXIT
trap 'rm -f "$rds_t"; exit 1' HUP INT TERM PIPE
cat >"$rds_t" || exit 1
if [ "$(wc -c <"$rds_t" | tr -d ' ')" != "$rds_s" ]; then
	echo 'the content did not arrive whole' >&2
	exit 1
fi
{ chmod "$rds_m" "$rds_t" && chown "$rds_o" "$rds_t"; } || exit 1
if command -v sync >/dev/null 2>&1; then sync "$rds_t" 2>/dev/null || :; fi
mv -f "$rds_t" "$rds_f" || exit 1
if command -v restorecon >/dev/null 2>&1; then restorecon "$rds_f" 2>/dev/null || :; fi
