#!/bin/sh
# Prints "read", then the last lines of the kernel log that report problems with RDMA. A module that is not signed (DKMS) is not a
# problem.
log=$(dmesg) && echo read && printf '%s\n' "$log" |
	grep -Ei 'call trace|vmw_pvrdma.*attached to device|(vmw_pvrdma|mlx5_core).*(fail|error|could not)' |
	grep -v 'module verification failed' | tail -n 20
