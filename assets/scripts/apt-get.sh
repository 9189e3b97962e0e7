#!/bin/sh
# Works with apt-get and dpkg as root. Configuration files that were changed by hand are kept, and no question is asked.
#
#   apt-get.sh repair                      finishes what an interrupted dpkg left undone
#   apt-get.sh update                      fetches the lists
#   apt-get.sh install|would-install NAME...  those of the names that can be had; "would" only says what would happen
#   apt-get.sh exact NAME=VERSION...       those of these versions that can be had, older ones too
#   apt-get.sh remove|would-remove NAME...
do=$1
shift
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
configure() { dpkg --force-confdef --force-confold --configure -a; }
get() { apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"; }

case $do in install | would-install)
	# apt-get installs nothing when one name is unknown: the names that can be had are found one by one.
	apt-get -s -qq install -- "$@" >/dev/null 2>&1 || for p; do
		shift
		if said=$(apt-get -s -qq install -- "$p" 2>&1 >/dev/null); then set -- "$@" "$p"; else echo "$said" >&2; fi
	done
	[ $# -gt 0 ] || exit 0
	;;
exact)
	# It does nothing either when one version is not to be had: the others go back without it.
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
	# A killed dpkg leaves a journal, files whose names are numbers, and apt-get refuses to work then; a dpkg that was
	# stopped between two packages only leaves packages that are not configured. What the power failed under while it was
	# unpacked has to be unpacked again first (the third letter of its state is R, dpkg-query(1)): dpkg does not configure it,
	# and apt-get alone tries just that if the package counts as unpacked already.
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
