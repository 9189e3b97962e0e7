#!/bin/sh
# Prints "NAME|VERSION-RELEASE" of packages, each with the name in the query (NAME-VERSION-RELEASE.ARCH is one too), and first of rpm
# itself, which is missing if rpm cannot read its database: rpm-versions.sh NAME... In a name, KERNEL at the end is replaced by the
# running kernel. If rpm neither has a package nor says that it is not installed, there is a line "!".
command -v rpm >/dev/null && for p in rpm "$@"; do
	case $p in *KERNEL) p=${p%KERNEL}$(uname -r) ;; esac
	said=$(LC_ALL=C rpm -q --qf "$p|%{VERSION}-%{RELEASE}\\n" "$p") || case $said in *'is not installed'*) ;; *) said='!' ;; esac
	printf '%s\n' "$said"
done
