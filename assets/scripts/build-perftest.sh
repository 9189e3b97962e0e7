#!/bin/sh
# Builds perftest: build-perftest.sh SOURCE PREFIX BUILT HEADER, in a fresh directory below BUILT, which belongs to root. SOURCE is
# an archive, or a URL that the guest downloads it from, with #sha256=HEX at its end if its content is to be verified. HEADER is
# cuda.h; without it perftest is built without CUDA.
archive=$1 prefix=$2 built=$3 header=$4
rm -rf -- "$built/${prefix##*/}".??????
work=$(mktemp -d "$built/${prefix##*/}.XXXXXX") || exit 1
(
	case $archive in
	*://*)
		url=${archive%%#*} sum=
		case $archive in *'#sha256='*) sum=${archive#*'#sha256='} ;; esac
		archive=$work/archive
		if command -v curl >/dev/null; then
			# Where the URL is https, no redirect leads to a server that proves nothing.
			case $url in https://*) set -- --proto-redir =https ;; *) set -- ;; esac
			curl -fsSL "$@" -o "$archive" "$url" >"$work/log" 2>&1
		else
			wget -nv -O "$archive" "$url" >"$work/log" 2>&1
		fi || {
			echo "cannot download $url: $(tail -n 1 "$work/log")" >&2
			exit 1
		}
		if [ -n "$sum" ] && ! echo "$sum  $archive" | sha256sum -c >/dev/null 2>&1; then
			echo "the SHA-256 of $url is not $sum" >&2
			exit 1
		fi
		;;
	esac
	{ mkdir "$work/src" && tar -xf "$archive" -C "$work/src" && cd "$work"/src/*/; } || exit 1
	{
		if ! [ -e configure ]; then sh ./autogen.sh || exit 1; fi
		./configure --prefix="$prefix" ${header:+"CUDA_H_PATH=$header"} && make -j "$(nproc)" && make install
	} >"$work/log" 2>&1 || {
		grep -E 'rror|not found|cannot |Read-only|No space' "$work/log" | tail -n 3 >&2
		exit 1
	}
)
ended=$?
rm -rf -- "$work"
[ $ended = 0 ] || exit 1
if [ -z "$header" ]; then
	if ! "$prefix"/bin/ib_send_bw --version 2>&1 | grep -q '^Version'; then
		echo 'the program that was built reports no version' >&2
		exit 1
	fi
elif ! "$prefix"/bin/ib_write_bw --help 2>&1 | grep -q -e --use_cuda; then
	echo 'what was built does not know --use_cuda' >&2
	exit 1
fi
