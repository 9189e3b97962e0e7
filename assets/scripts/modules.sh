#!/bin/sh
# Prints the files or names of those modules that this kernel has: modules.sh MODULE... All are queried in one call, because
# starting a program takes long in a guest that is emulated or busy. If the answer for one is not a file with its name but
# "(builtin)" or "(null)", they are queried one by one. The first line says that modinfo was there to ask: for a user without root, it
# may not be in the PATH.
command -v modinfo >/dev/null && echo modinfo
found=$(modinfo -n "$@")
case $found in
*'('*) for m in "$@"; do modinfo -n "$m" >/dev/null && echo "$m"; done ;;
*) echo "$found" ;;
esac
