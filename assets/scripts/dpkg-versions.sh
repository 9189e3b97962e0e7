#!/bin/sh
# Prints "STATUS|NAME|VERSION|PROVIDES" of every package of dpkg, nothing if dpkg is not installed: dpkg-versions.sh
# If the list is not complete, which may be cut within a line, "!" is its last line.
# shellcheck disable=SC2016 # the fields are dpkg-query's
! command -v dpkg-query >/dev/null || dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}|${Provides}\n' || printf '\n!\n'
