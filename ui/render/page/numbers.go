package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

func isLatency(m perftest.Measurement) bool {
	name, _, _ := strings.Cut(m.Test, " ")
	return strings.HasSuffix(name, "_lat") || m.AchievedUs > 0
}

func figure(m perftest.Measurement) string {
	return cmp.Or(m.Figure(), m.Error, "not measured")
}

// size formats bytes in binary units: 2 B, 64 KiB, 8 MiB.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<30 && bytes%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", bytes>>30)
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

// three formats a number with about three significant digits.
func three(v float64) string {
	switch {
	case v <= 0 || math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	switch n := len(s); {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	default:
		return (s[n/2-1] + s[n/2]) / 2
	}
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }
