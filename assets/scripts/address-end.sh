#!/bin/sh
# Ends the watch over a change of an address that is decided, and removes its files: address-end.sh DIR UNIT WORK. The unit is
# stopped first: the watch would end by itself, but up to a second after DIR is gone. systemctl stop returns when the processes have
# ended, and systemd then unloads the unit, unless it failed (systemd.unit(5), Unit Garbage Collection; systemctl(1), reset-failed).
# If nothing is decided, the unit is not stopped in time, or systemd does not answer, DIR stays and the exit code is 1. A watch
# without systemd ends by itself: where systemd does not run (sd_booted(3)), systemctl answers nothing.
dir=$1 unit=$2 work=$3
if [ -e "$dir/watching" ] || [ -e "$dir/undoing" ]; then exit 1; fi # not decided
limited() { if command -v timeout >/dev/null 2>&1; then timeout 10 "$@"; else "$@"; fi; }
if [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; then
	limited systemctl stop "$unit" 2>/dev/null
	case $(limited systemctl is-active "$unit" 2>/dev/null) in
	inactive | unknown) ;;
	failed) limited systemctl reset-failed "$unit" 2>/dev/null || exit 1 ;;
	*) exit 1 ;;
	esac
fi
rm -rf -- "$dir"
rmdir "$work" 2>/dev/null || :
