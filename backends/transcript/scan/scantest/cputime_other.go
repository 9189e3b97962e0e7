//go:build !unix

package scantest

import "time"

var started = time.Now()

// CPUTime is the time since the process was started, where no better one is to be had.
func CPUTime() time.Duration { return time.Since(started) }
