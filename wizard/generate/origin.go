// Package generate generates the files of the guides that other tools use: Kubernetes jobs and MPI benchmarks here, files for
// containers in package containers, and the configuration of physical switches in package switches. It does no I/O, and the
// output is deterministic. No value can break out of its place in a file: each is checked, or quoted for the format.
package generate

import (
	"strings"
	"time"
)

// An Origin says what generated a file, from what and when. It is the header of every file that supports comments.
type Origin struct {
	Tool string   // "rdma-setup 1.4.0"
	What string   // "generate switch --os onyx"
	From []string // inputs: "answers.yaml", "LLDP of leaf-01"
	Made time.Time
}

// Comment writes the origin as comment lines that begin with mark.
func (o Origin) Comment(mark string) string {
	var b strings.Builder
	line := "Made by " + o.Tool + ", " + o.What
	if !o.Made.IsZero() {
		line += ", " + o.Made.UTC().Format(time.RFC3339)
	}
	b.WriteString(mark + " " + Plain(line) + "\n")
	if len(o.From) > 0 {
		b.WriteString(mark + " From: " + Plain(strings.Join(o.From, "; ")) + "\n")
	}
	return b.String()
}

// Plain makes any text safe for a comment in any file: one line of printable ASCII, without the question mark (help on the
// console of a switch), the backslash (line continuation) and characters that are special in a shell.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune("?\\`$", r) {
			return '_'
		}
		return r
	}, s)
}
