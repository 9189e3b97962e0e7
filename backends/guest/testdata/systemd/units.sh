#!/bin/sh
# Prints which units systemd keeps in memory, and how systemctl reports it; units.txt is what it prints with systemd 252 of Debian 12.
file=/etc/systemd/system/rdma-setup-test.service
units() { systemctl list-units --all --no-legend --no-pager --plain 'rdma-setup-test*' | while read -r name load active sub _; do echo "$name $load $active $sub"; done; }
run() { systemd-run --quiet --unit=rdma-setup-test "$@"; }
say() {
	echo "$1: exit $?"
	units
}

echo '# A transient unit that has ended is unloaded.'
run --wait true
say true
systemctl stop rdma-setup-test 2>&1
say stop
systemctl reset-failed rdma-setup-test 2>&1
say reset-failed

echo '# One that failed stays, and its name is taken, until reset-failed.'
run --wait false
say false
systemctl stop rdma-setup-test
say stop
systemctl daemon-reload
say daemon-reload
run true 2>&1
say 'the same name'
systemctl reset-failed rdma-setup-test
say reset-failed
run --wait --collect false
say collect

echo '# One that is running is unloaded when systemctl stop returns, also if only its shell was waiting.'
run /bin/sh -c 'while :; do sleep 1; done'
say loop
run true 2>&1
say 'the same name'
systemctl stop rdma-setup-test
say stop

echo '# SIGKILL is a failure, and so is a script that is no longer there.'
run sleep $((4320 + 1)) # this script must not match the pattern
until pkill -KILL -f '[s]leep 4321'; do sleep 0.1; done
while systemctl is-active --quiet rdma-setup-test; do sleep 0.1; done
say killed
systemctl reset-failed rdma-setup-test
run /bin/sh /run/rdma-setup-test/gone
while systemctl is-active --quiet rdma-setup-test; do sleep 0.1; done
say 'no script'
systemctl reset-failed rdma-setup-test

echo '# A unit that failed outlives its file.'
printf '[Service]\nType=oneshot\nExecStart=/bin/false\n' >"$file"
systemctl daemon-reload
run true 2>&1
say 'a name with a file'
systemctl start rdma-setup-test 2>/dev/null
say start
rm "$file"
systemctl daemon-reload
say 'file removed'
systemctl stop rdma-setup-test
say stop
systemctl reset-failed rdma-setup-test
say reset-failed
