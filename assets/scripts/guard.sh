#!/bin/sh
# Runs one step of a change as root, one at a time in this guest, so that a later run finds it after a lost connection.
#
#   guard.sh DIR LOCK STEP LIMIT KEEP SUM BODY HELD
#
#   DIR    the working directory, /run/rdma-setup
#   LOCK   a directory that only root can open, /root: it is locked (flock(1) of util-linux locks directories too), so
#          nothing has to be made for the lock, and nothing is left of it
#   STEP   description of the step
#   LIMIT  seconds that the step may take
#   KEEP   yes: never end the step (package managers, initial RAM disks, installers); undo: its client is the only one that changes
#          this guest, so that a change of an address that is not confirmed is undone, also if the client does not wait for it
#   SUM    SHA-256 of BODY and a newline
#   BODY   the script of the step; empty: only wait for a step that is running
#   HELD   the script step.sh, which gets DIR STEP LIMIT KEEP SUM BODY
#
# A step that waits for another prints a line of the form "<RS>#waiting BEGAN LIMIT STEP", and each step prints the line
# "<RS>#begins" before it begins. Exit code 75 says that the other one did not end within its own limit; 70 and 76 are those of
# step.sh.
g_dir=$1 g_lock=$2 g_keep=$5 g_held=$8
set -- "$1" "$3" "$4" "$5" "$6" "$7"

# running prints the note of a running step: BEGAN LIMIT STEP. Only root's own note is trusted.
running() {
	[ -d "$g_dir" ] && [ ! -L "$g_dir" ] && [ "$(stat -c '%u %a' "$g_dir")" = "0 700" ] || return 1
	[ -f "$g_dir/running" ] && [ ! -L "$g_dir/running" ] && cat "$g_dir/running"
}

# waits sets g_wait, the seconds for which the caller waits for another step, and prints which step it is.
waits() {
	g_wait=60
	g_note=$(running 2>/dev/null) || return 0
	g_began=${g_note%% *}
	g_limit=${g_note#* }
	g_limit=${g_limit%% *}
	case $g_began$g_limit in *[!0-9]* | '') return 0 ;; esac
	g_wait=$((g_began + g_limit - $(date +%s)))
	[ "$g_wait" -ge 60 ] || g_wait=60
	printf '\036#waiting %s\n' "$g_note"
}

g_session=
if [ "$g_keep" != no ] && command -v setsid >/dev/null 2>&1; then g_session=setsid; fi
if command -v flock >/dev/null 2>&1; then
	flock -n "$g_lock" true || waits
	# A child of this shell leads no process group, so setsid(1) runs the step in the same process and this shell waits for it:
	# its option -w came with util-linux 2.24, and EL 7 has 2.23.
	$g_session flock -w "${g_wait:-60}" -E 75 "$g_lock" /bin/sh -c "$g_held" rdma-setup "$@"
	exit $?
fi
# Without flock the note is the lock. It is valid until its limit: a step with an older note was ended by a reboot or a signal.
g_end=
while g_note=$(running 2>/dev/null); do
	[ -n "$g_end" ] || { waits; g_end=$(($(date +%s) + g_wait)); }
	[ "$(date +%s)" -lt "$g_end" ] || break
	sleep 1
done
$g_session /bin/sh -c "$g_held" rdma-setup "$@"
exit $?
