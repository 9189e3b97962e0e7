package perftest

import "fmt"

// Figure returns the result of a test with its unit: "96.1 Gb/s" or "2.01 us"; "" if there is none.
func (m Measurement) Figure() string {
	switch {
	case m.AchievedGbps > 0:
		return fmt.Sprintf("%.1f Gb/s", m.AchievedGbps)
	case m.AchievedUs > 0:
		return fmt.Sprintf("%.2f us", m.AchievedUs)
	case m.Reached != nil && *m.Reached:
		return "reached"
	case m.Reached != nil:
		return "not reached"
	}
	return ""
}

// Repeated returns of how many tests the figure is the median, and their spread: "median of 3, spread 1.2 %"; "" for one test.
func (m Measurement) Repeated() string {
	if m.Repeats < 2 {
		return ""
	}
	return fmt.Sprintf("median of %d, spread %.1f %%", m.Repeats, m.Spread)
}
