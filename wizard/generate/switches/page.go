package switches

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// A page collects the lines of a configuration and the sources that they cite.
type page struct {
	mark  string // prefix of a comment
	idle  bool   // every line is a comment
	b     strings.Builder
	cited []source
}

// A source is the document for a line.
type source struct {
	name, where string
	unverified  bool
}

// say begins a block with its purpose and the sources of its lines.
func (p *page) say(why string, from ...source) {
	var refs string
	for _, s := range from {
		i := slices.Index(p.cited, s)
		if i < 0 {
			p.cited = append(p.cited, s)
			i = len(p.cited) - 1
		}
		refs += fmt.Sprintf(" [%d]", i+1)
		if s.unverified {
			refs += " UNVERIFIED"
		}
	}
	p.b.WriteString(p.mark + "\n" + p.mark + " " + generate.Plain(why+refs) + "\n")
}

// add adds a line of configuration.
func (p *page) add(format string, args ...any) {
	if p.idle {
		p.b.WriteString(p.mark + " ")
	}
	fmt.Fprintf(&p.b, format+"\n", args...)
}

// note adds a comment.
func (p *page) note(format string, args ...any) {
	p.b.WriteString(p.mark + " " + generate.Plain(fmt.Sprintf(format, args...)) + "\n")
}

// String returns the lines and, at the end, the sources.
func (p *page) String() string {
	var b strings.Builder
	b.WriteString(p.b.String() + p.mark + "\n" + p.mark + " Sources:\n")
	for i, s := range p.cited {
		b.WriteString(p.mark + " " + generate.Plain(strings.TrimSuffix(fmt.Sprintf("[%d] %s: %s", i+1, s.name, s.where), ": ")) + "\n")
	}
	return b.String()
}
