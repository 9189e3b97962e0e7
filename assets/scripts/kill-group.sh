#!/bin/sh
# Stops a process group: sends SIGTERM, waits briefly, then sends SIGKILL. kill-group.sh GROUP
kill -s TERM -- "-$1" 2>/dev/null || exit 0
for _ in 1 2 3; do
	sleep 1
	kill -s 0 -- "-$1" 2>/dev/null || exit 0
done
kill -s KILL -- "-$1"
