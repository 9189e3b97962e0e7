//go:build unix

package scantest

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time of this process, which does not depend on the load of the machine.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
