#!/bin/sh
# Works with apt-get and dpkg as root. Configuration files that were changed by hand are kept, and no question is asked.
#
#   apt-get.sh repair                      completes the work of an interrupted dpkg
#   apt-get.sh update                      fetches the lists
#   apt-get.sh install|would-install NAME...  installs those of the names that are available; "would" only simulates
#   apt-get.sh exact NAME=VERSION...       installs those of these versions that are available, also older ones
#   apt-get.sh remove|would-remove NAME...
do=$1
shift
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
configure() { dpkg --force-confdef --force-confold --configure -a; }
get() { apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"; }

case $do in install | would-install)
	# apt-get installs nothing if one name is unknown: the available names are found one by one.
	apt-get -s -qq install -- "$@" >/dev/null 2>&1 || for p; do
		shift
		if said=$(apt-get -s -qq install -- "$p" 2>&1 >/dev/null); then set -- "$@" "$p"; else echo "$said" >&2; fi
	done
	[ $# -gt 0 ] || exit 0
	;;
exact)
	# It does nothing either if one version is not available: the others are installed without it.
	for p; do
		shift
		if apt-cache madison "${p%%=*}" 2>/dev/null | grep -qF " ${p#*=} |"; then
			set -- "$@" "$p"
		else
			echo "E: Version '${p#*=}' for '${p%%=*}' was not found" >&2
		fi
	done
	[ $# -gt 0 ] || exit 0
	;;
esac
case $do in
repair)
	# A killed dpkg leaves a journal (files whose names are numbers), and apt-get refuses to work until it is processed; a dpkg
	# that was stopped between two packages only leaves packages that are not configured. A package that was cut off while it
	# was unpacked must be unpacked again first (the third letter of its state is R, dpkg-query(1)): dpkg does not configure it,
	# and apt-get by itself only tries to configure it if it counts as unpacked.
	# shellcheck disable=SC2010 # the names are numbers
	if ls /var/lib/dpkg/updates 2>/dev/null | grep -q '^[0-9][0-9]*$' || [ -n "$(dpkg --audit 2>/dev/null)" ]; then
		configure >/dev/null 2>&1 || : # apt-get refuses to work as long as there is a journal
		# shellcheck disable=SC2016,SC2046 # the fields are dpkg-query's; names of packages have no blanks
		set -- $(dpkg-query -W -f '${db:Status-Abbrev}|${binary:Package}\n' | sed -n 's/^..R|//p')
		[ $# -eq 0 ] || get --reinstall --no-install-recommends install -- "$@"
		configure
	fi
	;;
update) get update ;;
install) get --no-install-recommends install -- "$@" ;;
exact)
	get --no-install-recommends --allow-downgrades install -- "$@" || for p; do
		get --no-install-recommends --allow-downgrades install -- "$p"
	done
	;;
would-install) apt-get -s -q --no-install-recommends install -- "$@" ;;
# A package that was interrupted while it was unpacked can neither be configured nor, without this option, removed.
remove) get -o Dpkg::Options::=--force-remove-reinstreq purge -- "$@" ;;
would-remove) apt-get -s -q purge -- "$@" ;;
esac
