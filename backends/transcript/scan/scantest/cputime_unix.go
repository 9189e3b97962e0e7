//go:build unix

package scantest

import (
	"syscall"
	"time"
)

// CPUTime is the processor time that this process has used. A busy machine does not make it longer, as it does the clock.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
