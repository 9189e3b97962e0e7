package page

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// barCells is how wide the bars of the incast chart are.
const barCells = 20

// loaded returns the chart of the receivers that several senders sent to at the same time; none if there was no load.
func loaded(all []perftest.Measurement) []Table {
	crowds := perftest.Crowds(all)
	if len(crowds) == 0 {
		return nil
	}
	t := Table{Caption: "Incast: several senders to one receiver", Head: []string{"receiver", "senders", "together", "Gb/s", "expected",
		"fairness", "lost", "losslessness", "verdict"}}
	for _, c := range crowds {
		t.Rows = append(t.Rows, []string{c.To, senders(c), bar(c.SumGbps, c.ExpectedGbps), fmt.Sprintf("%.1f", c.SumGbps),
			fmt.Sprintf("%.1f", c.ExpectedGbps),
			fairness(c), fmt.Sprint(c.Lost), Lossless(c), string(c.Verdict)})
	}
	return []Table{t}
}

// bar draws a share of the expected value.
func bar(got, want float64) string {
	n := 0
	if want > 0 {
		n = min(barCells, int(math.Round(barCells*got/want)))
	}
	return strings.Repeat("█", n) + strings.Repeat("░", barCells-n)
}

func senders(c perftest.Crowd) string {
	if c.Raised {
		return fmt.Sprintf("%d, load raised", c.Senders)
	}
	return fmt.Sprint(c.Senders)
}

func fairness(c perftest.Crowd) string {
	if c.Apart {
		return "inconclusive: not all sent at the same time"
	}
	if c.Fairness < 0.95 {
		return fmt.Sprintf("%.2f, least: %s", c.Fairness, c.Worst)
	}
	return fmt.Sprintf("%.2f", c.Fairness)
}

// Fair describes how many senders shared a receiver and how evenly.
func Fair(c perftest.Crowd) string { return "senders " + senders(c) + "; fairness " + fairness(c) }

// Lossless returns in one word whether a receiver lost packets.
func Lossless(c perftest.Crowd) string { return cmp.Or(Proven(c.Lossless), "not configured") }

// railMatrix returns the table of rails; none with one rail.
func railMatrix(all []perftest.Measurement) []Table {
	rails, cells := perftest.RailMatrix(all)
	if len(rails) == 0 {
		return nil
	}
	t := Table{Caption: "Rails: from the rail of the row to that of the column", Head: append([]string{"rail"}, rails...)}
	for _, from := range rails {
		line := []string{from}
		for _, to := range rails {
			c, there := cells[[2]string{from, to}]
			text := "not tested"
			if there {
				text = fmt.Sprintf("%s: %s", c.Verdict, c.Text)
			}
			line = append(line, text)
		}
		t.Rows = append(t.Rows, line)
	}
	return []Table{t}
}
