#!/bin/sh
# Runs a step as the only one in this guest: step.sh DIR STEP LIMIT KEEP SUM BODY; see guard.sh, which starts it under the lock. All
# working files are in a fresh directory below one that only root can open, and are removed with the step. Exit codes before the step
# begins: 70 if the working directory is not to be trusted or the script did not arrive whole, 76 if systemd does not stop the watch
# over an earlier change of an address.
s_dir=$1 s_step=$2 s_limit=$3 s_keep=$4 s_hash=$5 s_body=$6
umask 077
refuse() {
	echo "$1" >&2
	exit 70
}

# The watcher of an address removes the directory when it is empty, without the lock: then it is created again. Once this step's own
# directory exists in it, it cannot be removed.
s_n=0 s_w=
while :; do
	if [ ! -e "$s_dir" ] && [ ! -L "$s_dir" ]; then
		[ -n "$s_body" ] || exit 0
		s_error=$(mkdir -m 700 "$s_dir" 2>&1)
	fi
	if [ -L "$s_dir" ] || [ -e "$s_dir" ]; then
		if [ -L "$s_dir" ] || [ ! -d "$s_dir" ] || [ "$(stat -c '%u' "$s_dir" 2>/dev/null)" != 0 ]; then
			s_what=$(stat -c '%F of %U' "$s_dir" 2>/dev/null)
			[ -z "$s_what" ] || refuse "$s_dir is not a directory of root: $s_what"
		elif s_error=$(chmod 700 "$s_dir" 2>&1); then
			[ -n "$s_body" ] || break
			s_error=$(mktemp -d "$s_dir/step.XXXXXX" 2>&1) && s_w=$s_error && break
		fi
	fi
	s_n=$((s_n + 1))
	[ $s_n -lt 10 ] || {
		echo "$s_error" >&2
		exit 1
	}
done

trap '[ -z "$s_w" ] || rm -rf -- "$s_w"; rm -f "$s_dir/running"; rmdir "$s_dir" 2>/dev/null' EXIT
trap 'exit 143' HUP INT TERM PIPE 2>/dev/null
# This step has the lock, so no other one is running: anything here was left by an interrupted step.
for s_old in "$s_dir"/step.??????; do
	[ "$s_old" = "$s_w" ] || rm -rf -- "$s_old"
done
rm -rf -- "$s_dir/running"
# A change of an address may wait to be confirmed: only who made it knows the state before, so that this step waits until it is decided,
# and undoes it if its watch is gone, or at once if KEEP is undo. If one is being undone, this step waits for it. Nothing of its watch is
# left then, neither its unit nor its files; see address-end.sh.
for s_turn in "$s_dir"/address-*; do
	[ -d "$s_turn" ] || continue
	s_n=0
	while [ "$s_keep" != undo ] && [ -e "$s_turn/watching" ] && { kill -0 "$(cat "$s_turn/pid" 2>/dev/null)" 2>/dev/null ||
		systemctl -q is-active "rdma-setup-watch-${s_turn##*-}" 2>/dev/null; }; do # earlier versions wrote no pid
		[ $s_n -gt 0 ] || printf '\036#waiting %s 60 confirm a change of an address\n' "$(date +%s)"
		sleep 1
		s_n=1
	done
	! mv "$s_turn/watching" "$s_turn/undoing" 2>/dev/null || sh "$s_turn/back" >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
	s_n=0
	while [ -e "$s_turn/undoing" ] && [ $s_n -lt 240 ]; do
		sleep 1
		s_n=$((s_n + 1))
	done
	[ ! -e "$s_turn/undoing" ] || continue
	[ -s "$s_turn/end" ] || rm -rf -- "$s_turn" # of an earlier version, or interrupted before its watch began
	[ ! -e "$s_turn" ] || sh "$s_turn/end" 2>/dev/null || [ ! -e "$s_turn" ] || exit 76
done
[ -n "$s_body" ] || exit 0

printf '%s\n' "$s_body" >"$s_w/body" || exit 1
if [ -n "$s_hash" ] && command -v sha256sum >/dev/null 2>&1; then
	s_sum=$(sha256sum <"$s_w/body")
	[ "${s_sum%% *}" = "$s_hash" ] || refuse 'the script of the step did not arrive whole'
fi
echo "$(date +%s) $s_limit $s_step" >"$s_w/note" && mv "$s_w/note" "$s_dir/running" || exit 1

# The client of this step may be gone after a wait: then this line cannot be written, and nothing is done.
printf '\036#begins\n' || exit 1

s_timeout=
if [ "$s_keep" != yes ] && command -v timeout >/dev/null 2>&1; then s_timeout="timeout --foreground -k 10 $s_limit"; fi
umask 022
# Programs that the step leaves running (a DHCP client, a service) must not inherit the descriptor of the lock, which flock(1)
# passes to its command: they would keep the lock as long as they run. flock(1) and this shell hold it until the step has ended.
$s_timeout /bin/sh "$s_w/body" >"$s_w/out" 2>"$s_w/err" 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
s_rc=$?
cat "$s_w/err" >&2
cat "$s_w/out"
exit $s_rc
