#!/bin/sh
# Prints "NAME|VERSION-RELEASE" of packages, each by the name that rpm is asked for (NAME-VERSION-RELEASE.ARCH is one too):
# rpm-versions.sh NAME... In a name, KERNEL at the end stands for the running kernel.
command -v rpm >/dev/null && for p in "$@"; do
	case $p in *KERNEL) p=${p%KERNEL}$(uname -r) ;; esac
	rpm -q --qf "$p|%{VERSION}-%{RELEASE}\\n" "$p" || :
done
