#!/bin/sh
# Writes numbers below /proc/sys: sysctl-set.sh PATH NUMBER... Missing paths are skipped: their interface no longer exists.
while [ $# -gt 1 ]; do
	[ ! -e "/proc/sys/$1" ] || echo "$2" >"/proc/sys/$1" || exit 1
	shift 2
done
