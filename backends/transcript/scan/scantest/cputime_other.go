//go:build !unix

package scantest

import "time"

var started = time.Now()

// CPUTime returns the time since the process was started, on systems without a processor time.
func CPUTime() time.Duration { return time.Since(started) }
