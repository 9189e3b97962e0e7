#!/bin/sh
# Removes DOCA's packages, if there are any, and what MLNX_OFED and DOCA-OFED have in common.
if command -v dpkg-query >/dev/null; then
	for p in $(dpkg-query -W -f '${Package}\n' | grep -E '^(doca|flexio|dpa-)'); do
		DEBIAN_FRONTEND=noninteractive apt-get -q -y purge "$p" </dev/null || exit 1
	done
else
	for p in $(rpm -qa --qf '%{NAME}\n' | grep -E '^(doca|flexio|dpa-)'); do
		dnf -y --setopt=clean_requirements_on_remove=0 remove "$p" </dev/null || exit 1
	done
fi
[ ! -x /usr/sbin/ofed_uninstall.sh ] || /usr/sbin/ofed_uninstall.sh --force </dev/null
