package textutils

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// tr supports sets with ranges, classes and escapes, and the options -d, -s and -c.
func tr(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("d s c C delete squeeze-repeats complement")
	if err != nil {
		return p.Usage(1, err)
	}
	if len(o.Args) == 0 {
		return p.Usage(1, errors.New("missing operand"))
	}
	data, _ := io.ReadAll(p.Stdin)
	from := trSet(o.Args[0])
	in := func(b byte) bool { return slices.Contains(from, b) != o.Has("c", "C", "complement") }
	var to []byte
	if len(o.Args) > 1 {
		to = trSet(o.Args[1])
	}
	var out []byte
	for _, b := range data {
		squeeze := in(b)
		if in(b) {
			switch at := slices.Index(from, b); {
			case o.Has("d", "delete"):
				continue
			case len(to) == 0:
			case at < 0:
				b = to[len(to)-1]
			default:
				b = to[min(at, len(to)-1)]
			}
		}
		if o.Has("s", "squeeze-repeats") && squeeze && len(out) > 0 && out[len(out)-1] == b {
			continue
		}
		out = append(out, b)
	}
	_, _ = p.Stdout.Write(out)
	return 0
}

func trSet(s string) []byte {
	s = strings.NewReplacer("[:space:]", " \\t\\n\\r", "[:digit:]", "0-9", "[:lower:]", "a-z", "[:upper:]", "A-Z",
		"[:alpha:]", "A-Za-z", "[:alnum:]", "0-9A-Za-z", "[:blank:]", " \\t").Replace(s)
	var set []byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			i++
			c = s[i]
			if e := strings.IndexByte("ntr0", c); e >= 0 {
				c = "\n\t\r\x00"[e]
			}
		} else if i+2 < len(s) && s[i+1] == '-' {
			for b := c; b <= s[i+2]; b++ {
				set = append(set, b)
			}
			i += 2
			continue
		}
		set = append(set, c)
	}
	return set
}
