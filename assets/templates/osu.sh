# Run it on the first guest, as a user whose SSH key all guests accept; it loads the fabric:
#   sh osu.sh >today.txt                 measure: one line per test, number of VMs and message size
#   sh osu.sh baseline.txt >today.txt    measure, and compare with an earlier result, for example of bare metal
# It needs Open MPI with UCX and the OSU micro-benchmarks (mpitests-openmpi on EL; else from mvapich.cse.ohio-state.edu).
# Up to 8.3 % worse than the baseline is accepted: the guide leaves 4 of 48 cores to ESXi.
set -eu
hosts="@HOSTS@"
counts="@COUNTS@"
runs=@RUNS@
limit=8.3
baseline=${1:-}

die() { echo "error: $*" >&2; exit 3; }
command -v mpirun >/dev/null || die "there is no mpirun on this guest"
[ -z "$baseline" ] || [ -r "$baseline" ] || die "$baseline cannot be read"
program() {
	for p in "$1" "mpitests-$1"; do
		if command -v "$p"; then return; fi
	done
	die "$1 is not in the PATH of this guest"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for test in osu_mbw_mr osu_alltoall; do
	bin=$(program $test)
	for n in $counts; do
		list=$(echo "$hosts" | cut -d' ' -f1-"$n" | sed 's/ /:1,/g'):1
		: >"$work/runs"
		i=0
		while [ $i -lt $runs ]; do
			i=$((i + 1))
			echo "$test, $n VMs, run $i of $runs" >&2
			mpirun -np "$n" --host "$list" @OPTIONS@ "$bin" >>"$work/runs" </dev/null || { echo "error: $test failed on $list" >&2; exit 1; }
		done
		awk -v test=$test -v n="$n" '$1 ~ /^[0-9]+$/ && $2 + 0 > 0 { sum[$1] += $2; seen[$1]++ }
			END { for (s in sum) printf "%s %d %d %.2f\n", test, n, s, sum[s] / seen[s] }' "$work/runs" | sort -k3,3n >>"$work/result"
	done
done
cat "$work/result"
[ -n "$baseline" ] || exit 0
awk -v limit=$limit '
	NR == FNR { base[$1 " " $2 " " $3] = $4; next }
	{
		key = $1 " " $2 " " $3
		if (!(key in base) || base[key] <= 0) next
		compared++
		worse = ($1 == "osu_alltoall" ? $4 - base[key] : base[key] - $4) / base[key] * 100
		if (worse > limit) { printf "FAIL %s: %.1f %% worse than the baseline, %s against %s\n", key, worse, $4, base[key]; bad++ }
	}
	END {
		if (!compared) { print "UNKNOWN: the baseline has none of these tests"; exit 3 }
		printf "%d of %d values within %s %%\n", compared - bad, compared, limit
		exit bad > 0
	}' "$baseline" "$work/result" >&2
