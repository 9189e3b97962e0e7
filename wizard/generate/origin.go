// Package generate makes the files of the guides that other tools run: Kubernetes jobs and MPI benchmarks here, what
// containers need in package containers, and the configuration of physical switches in package switches. It is pure:
// facts and wishes in, text out, and the same text for the same input. No value can leave its place in a file: each is
// checked or quoted in the manner of the file.
package generate

import (
	"strings"
	"time"
)

// An Origin says what made a file, from what and when. It heads every file that can hold comments.
type Origin struct {
	Tool string   // "rdma-setup 1.4.0"
	What string   // "generate switch --os onyx"
	From []string // what it was made from: "answers.yaml", "LLDP of leaf-01"
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

// Plain makes any text fit for a comment in any file: one line of printable ASCII, without the question mark (help on
// the console of a switch), the backslash (goes on in the next line) and what a shell would take apart.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune("?\\`$", r) {
			return '_'
		}
		return r
	}, s)
}
