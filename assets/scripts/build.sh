#!/bin/sh
# Installs the NVIDIA driver from its installer, or builds perftest: build.sh NAME FILE BUILT STATE PREFIX SCRIPT FIND. It records
# in BUILT/NAME what it begins before it begins, and that it is done after it has checked the result. STATE is the directory of
# BUILT, PREFIX the installation directory of perftest, SCRIPT build-perftest.sh and FIND find-cuda.sh. If SCRIPT is empty, FILE is
# the driver's installer; if FIND is empty, perftest is built without CUDA. The source of perftest may be a URL, with #sha256=HEX at
# its end.
name=$1 file=$2 built=$3 state=$4 prefix=$5 build=$6 find=$7
{ mkdir -p "$built" && chmod 755 "$state" "$built" && [ "$(stat -c %u "$built")" = 0 ]; } || exit 1
case $file in
*://*) ;;
*)
	if ! [ -r "$file" ]; then
		echo 'there is no such file in the guest' >&2
		exit 46
	fi
	;;
esac
if [ -z "$build" ]; then
	echo "begun $file" >"$built/$name" || exit 1
	options=--silent
	if command -v dkms >/dev/null; then options="$options --dkms"; fi
	# shellcheck disable=SC2086 # words
	sh "$file" $options </dev/null >/dev/null || {
		grep '^ERROR' /var/log/nvidia-installer.log >&2
		exit 1
	}
	if ! modinfo nvidia >/dev/null 2>&1; then
		echo 'the installer ended well, but the kernel has no module nvidia' >&2
		exit 1
	fi
else
	if [ -e "$prefix" ]; then
		echo "$prefix is there already, and not by this program" >&2
		exit 47
	fi
	echo "begun $file" >"$built/$name" || exit 1
	header=
	if [ -n "$find" ]; then
		header=$(eval "$find")
		if [ -z "$header" ]; then
			echo 'cuda.h is not there' >&2
			exit 1
		fi
	fi
	(
		set -- "$file" "$prefix" "$built" "$header"
		eval "$build"
	) || exit 1
fi
echo "done $file" >"$built/$name" || exit 1
