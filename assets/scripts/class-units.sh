#!/bin/sh
# Prints the units that set a traffic class, the command of those that are enabled, and whether their script exists:
# class-units.sh SCRIPT UNIT...
sets=$1
shift
for u in "$@"; do
	[ -f "$u" ] || continue
	echo "unit ${u##*/}"
	systemctl is-enabled --quiet "${u##*/}" && grep '^ExecStart=' "$u"
done
[ ! -e "$sets" ] || echo script
