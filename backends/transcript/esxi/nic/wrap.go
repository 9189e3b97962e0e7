package nic

import (
	"regexp"
	"strings"
)

// wrappedTitles is the end of a heading that the terminal wrapped.
var wrappedTitles = regexp.MustCompile(`^(?:(?:(?:(?:Duplex\s+)?MAC\s+)?Address\s+)?MTU\s+)?Description$|^(?:(?:MAC\s+)?Address\s+)?MTU$`)

// wrapped collects the lines after the rows of a table. They may be the rest of the descriptions, or noise: only the complete table
// shows which.
type wrapped struct {
	sure  bool // the heading is wrapped too
	tails map[int][]string
}

// add records a line after the row with that index.
func (w *wrapped) add(row int, line string) {
	if w.tails == nil {
		w.tails = map[int][]string{}
	}
	if len(w.tails[row]) < 4 {
		w.tails[row] = append(w.tails[row], strings.TrimSpace(line))
	}
}

// give appends the tails to the descriptions if the heading or at least half of several rows is wrapped. The last row can have at
// most as many tail lines as another row.
func (w *wrapped) give(rows int, description func(row int) **string) {
	if !w.sure && (len(w.tails) < 2 || 2*len(w.tails) < rows) {
		return
	}
	last, most := rows-1, 1
	for row, tail := range w.tails {
		if row != last {
			most = max(most, len(tail))
		}
	}
	for row, tail := range w.tails {
		to := description(row)
		text := strings.Join(tail[:min(most, len(tail))], " ")
		if *to != nil {
			text = **to + " " + text
		}
		*to = &text
	}
}
