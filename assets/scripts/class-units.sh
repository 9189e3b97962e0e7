#!/bin/sh
# Prints the units that set a traffic class, of those that are enabled the command, and whether their script is there:
# class-units.sh SCRIPT UNIT...
sets=$1
shift
for u in "$@"; do
	[ -f "$u" ] || continue
	echo "unit ${u##*/}"
	systemctl is-enabled --quiet "${u##*/}" && grep '^ExecStart=' "$u"
done
[ ! -e "$sets" ] || echo script
