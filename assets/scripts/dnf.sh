#!/bin/sh
# Works with dnf or yum, which have the same options, as root. It never prompts.
#
#   dnf.sh PROGRAM install|would-install NAME...  installs those of the names that are available; "would" only simulates
#   dnf.sh PROGRAM exact NAME-VERSION...  installs those of these versions that are available, older or newer than the installed ones
#   dnf.sh PROGRAM remove|would-remove NAME...
dnf=$1 do=$2 none=
shift 2
answer=-y
case $do in would-*) answer=--assumeno ;; esac

# known installs those of the names that are available. One unknown name keeps dnf from installing the others, and the option
# against this differs between dnf 4 and 5.
known() {
	for p; do
		shift
		if "$dnf" -q list "$p" >/dev/null 2>&1; then set -- "$@" "$p"; fi
	done
	if [ $# -eq 0 ]; then
		none=yes
		return
	fi
	"$dnf" "$answer" install "$@"
}

case $do in
*install)
	known "$@"
	status=$?
	if [ -n "$none" ]; then # dnf says itself what is unknown
		"$dnf" "$answer" install "$@"
		status=$?
	fi
	exit "$status"
	;;
exact)
	# dnf does nothing if one version is not available or in the other direction: downgrade and upgrade are two commands.
	for p; do
		shift
		if "$dnf" -q list --showduplicates "$p" >/dev/null 2>&1; then set -- "$@" "$p"; else echo "No package $p available." >&2; fi
	done
	for way in downgrade install; do
		for p; do
			shift
			rpm -q "$p" >/dev/null 2>&1 || set -- "$@" "$p"
		done
		[ $# -eq 0 ] || "$dnf" -y "$way" "$@"
	done
	for p; do
		rpm -q "$p" >/dev/null 2>&1 || "$dnf" -y downgrade "$p" || "$dnf" -y install "$p"
	done
	;;
*remove) "$dnf" "$answer" --setopt=clean_requirements_on_remove=0 remove "$@" ;;
esac
