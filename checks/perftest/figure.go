package perftest

import "fmt"

// Figure is what a test gave, with its unit: "96.1 Gb/s" or "2.01 us"; "" if it gave nothing.
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

// Repeated says of how many tests the figure is the median, and how far they lie apart: "median of 3, spread 1.2 %"; "" for one test.
func (m Measurement) Repeated() string {
	if m.Repeats < 2 {
		return ""
	}
	return fmt.Sprintf("median of %d, spread %.1f %%", m.Repeats, m.Spread)
}
