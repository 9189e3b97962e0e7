#!/bin/sh
# Prints "NAME|VERSION-RELEASE" of packages, each with the name in the query (NAME-VERSION-RELEASE.ARCH is one too), and first of rpm
# itself, which is missing if rpm cannot read its database: rpm-versions.sh NAME... In a name, KERNEL at the end is replaced by the
# running kernel.
command -v rpm >/dev/null && for p in rpm "$@"; do
	case $p in *KERNEL) p=${p%KERNEL}$(uname -r) ;; esac
	rpm -q --qf "$p|%{VERSION}-%{RELEASE}\\n" "$p" || :
done
