#!/bin/sh
# Prints "STATUS|NAME|VERSION|PROVIDES" of every package of dpkg, nothing where there is no dpkg: dpkg-versions.sh
# shellcheck disable=SC2016 # the fields are dpkg-query's
command -v dpkg-query >/dev/null && dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}|${Provides}\n'
