#!/bin/sh
# Runs a script and fails if the kernel log has more call traces afterwards: trace-guard.sh BODY. Then nothing may be loaded
# again (VMware's own QE reads the log after each reload).
traces() { dmesg 2>/dev/null | grep -c 'Call Trace'; }
before=$(traces)
(
	body=$1
	set --
	eval "$body"
)
rc=$?
if [ "$(traces)" -gt "${before:-0}" ] 2>/dev/null; then
	echo 'the kernel log has a new Call Trace' >&2
	exit 45
fi
exit $rc
