package plain

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// LineDiff lists the lines that differ between two texts: those of the first with -, those of the second with +, in order, and "..."
// for equal lines between them. The lines are safe to show on a terminal.
func LineDiff(a, b string) string {
	x, y := strings.Split(strings.TrimRight(a, "\n"), "\n"), strings.Split(strings.TrimRight(b, "\n"), "\n")
	if len(x)*len(y) > 4<<20 {
		return cleaned("- ", x) + "\n" + cleaned("+ ", y) // too long to compare
	}
	// same[i][j] is the number of lines that x[i:] and y[j:] have in common, in order.
	same := make([][]int, len(x)+1)
	for i := range same {
		same[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				same[i][j] = same[i+1][j+1] + 1
			} else {
				same[i][j] = max(same[i+1][j], same[i][j+1])
			}
		}
	}
	var out []string
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			if n := len(out); n == 0 || out[n-1] != "..." {
				out = append(out, "...")
			}
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && same[i+1][j] >= same[i][j+1]:
			out = append(out, "- "+x[i])
			i++
		default:
			out = append(out, "+ "+y[j])
			j++
		}
	}
	return cleaned("", out)
}

func cleaned(sign string, lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(sign + backends.Clean(l))
	}
	return b.String()
}
