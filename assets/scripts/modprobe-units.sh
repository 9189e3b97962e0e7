#!/bin/sh
# Prints the units of a directory that load modules and start at boot: modprobe-units.sh DIR/
for u in "$1"*.service; do
	if [ ! -f "$u" ] || ! grep -qs modprobe "$u"; then continue; fi
	u=${u##*/}
	if [ -e "$1multi-user.target.wants/$u" ] || systemctl is-enabled --quiet "$u"; then echo "$u"; fi
done
