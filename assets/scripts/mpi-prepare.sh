#!/bin/sh
# Creates a directory for an MPI measurement, finds Open MPI and the benchmarks, and if the benchmarks are missing, builds the
# program that replaces them: mpi-prepare.sh DIR SOURCE. It prints "mpi DIRECTORY" of mpirun and "bench WORD PROGRAM" for each of
# latency, bw and allreduce; bench is absent if SOURCE is empty. Status 41: no Open MPI; 42: no compiler; 43: DIR.
dir=$1 source=$2
mkdir -m 700 -- "$dir" || exit 43
# mpirun's agent, which its daemons need too, in every guest: Open MPI 4 crashes without it (open-mpi/ompi issue 7330).
# shellcheck disable=SC2016 # the agent expands them
printf '%s\n' '#!/bin/sh' 'asks=${0%/*}/asks' 'host=$1' shift 'printf "@launch %s %s\n" "$host" "$*" >"$asks"' >"$dir/agent" && chmod 700 "$dir/agent" || exit 43
bin=
for d in $(dirname "$(command -v mpirun 2>/dev/null || echo /nowhere/x)") /usr/lib64/openmpi/bin /usr/mpi/gcc/openmpi-*/bin; do
	if [ -x "$d/mpirun" ]; then
		bin=$d
		break
	fi
done
if [ -z "$bin" ]; then
	echo 'there is no mpirun of Open MPI' >&2
	exit 41
fi
echo "mpi $bin"
PATH=$bin:$PATH
[ -n "$source" ] || exit 0
osu() {
	for p in "osu_$1" "mpitests-osu_$1" "$bin/osu_$1" "$bin/mpitests-osu_$1"; do
		if command -v "$p"; then return; fi
	done
	find /opt/osu* /usr/local/libexec/osu-micro-benchmarks /usr/libexec/osu-micro-benchmarks -type f -perm -u+x -name "osu_$1" 2>/dev/null | head -n 1
}
l=$(osu latency) b=$(osu bw) a=$(osu allreduce)
if [ -z "$l" ] || [ -z "$b" ] || [ -z "$a" ]; then
	if ! command -v mpicc >/dev/null; then
		echo 'there are neither the OSU micro-benchmarks nor mpicc' >&2
		exit 42
	fi
	printf '%s' "$source" >"$dir/mpi.c" && mpicc -O2 -o "$dir/mpi" "$dir/mpi.c" >&2 || exit 42
	l="own $dir/mpi" b=$l a=$l
else
	l="osu $l" b="osu $b" a="osu $a"
fi
printf 'bench latency %s\nbench bw %s\nbench allreduce %s\n' "$l" "$b" "$a"
