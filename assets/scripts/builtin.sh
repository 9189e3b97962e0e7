#!/bin/sh
# Prints the files of those modules that are built into the kernel: builtin.sh MODULE... /proc/modules does not list them. Not every
# system has modules.builtin (Documentation/kbuild/kbuild.rst); it has hundreds of lines.
for m in "$@"; do
	set -- "$@" -e "/$m.ko"
	shift
done
[ $# = 0 ] || tr - _ <"/lib/modules/$(uname -r)/modules.builtin" | grep -F "$@"
