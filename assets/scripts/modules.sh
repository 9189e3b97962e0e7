#!/bin/sh
# Prints the files or names of those modules that this kernel has: modules.sh MODULE... All are asked for at once, for a
# guest that is emulated or busy takes long to start a program. Where one has no file that would tell its name, but
# "(builtin)" or "(null)", they are asked for one by one.
found=$(modinfo -n "$@")
case $found in
*'('*) for m in "$@"; do modinfo -n "$m" >/dev/null && echo "$m"; done ;;
*) echo "$found" ;;
esac
