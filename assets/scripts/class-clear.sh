#!/bin/sh
# Restores the traffic class of a device, and removes the unit that sets it.
#
#   class-clear.sh SCRIPT UNITS UNIT MAC CLASS [DEVICE [DIR]]
#
#   SCRIPT  the script that the units run; removed with the last unit
#   UNITS   the prefix of the paths of the units; UNIT is the name of this one
#   CLASS   the class before the change; without DEVICE nothing is set
#   DIR     the directory in configfs that did not exist before
script=$1 units=$2 unit=$3 mac=$4 class=$5 device=$6 dir=$7
systemctl disable "$unit" >/dev/null 2>&1
systemctl stop "$unit" >/dev/null 2>&1
systemctl reset-failed "$unit" 2>/dev/null # a unit that failed stays loaded without its file
if [ -n "$device" ] && [ -e "$script" ]; then sh "$script" "$mac" "$class" || exit 1; fi
if [ -n "$dir" ] && [ -d "$dir" ]; then rmdir "$dir" || exit 1; fi
# The unit's file is removed after these, then the script, which other units may need: an interrupted removal remains visible.
rm -f -- "${units%/*}/$unit" || exit 1
systemctl daemon-reload
ls "$units"*.service >/dev/null 2>&1 || rm -f -- "$script"
