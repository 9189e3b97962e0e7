#!/bin/sh
# Builds perftest with CUDA: build-perftest.sh ARCHIVE PREFIX BUILT HEADER, in a fresh directory below BUILT, which belongs
# to root.
archive=$1 prefix=$2 built=$3 header=$4
rm -rf -- "$built"/perftest.??????
work=$(mktemp -d "$built/perftest.XXXXXX") || exit 1
(
	{ tar -xf "$archive" -C "$work" && cd "$work"/*/; } || exit 1
	{
		if ! [ -e configure ]; then sh ./autogen.sh || exit 1; fi
		./configure --prefix="$prefix" CUDA_H_PATH="$header" && make -j "$(nproc)" && make install
	} >"$work/log" 2>&1 || {
		grep -E 'rror|not found|cannot find' "$work/log" | tail -n 3 >&2
		exit 1
	}
)
ended=$?
rm -rf -- "$work"
[ $ended = 0 ] || exit 1
if ! "$prefix"/bin/ib_write_bw --help 2>&1 | grep -q -e --use_cuda; then
	echo 'what was built does not know --use_cuda' >&2
	exit 1
fi
