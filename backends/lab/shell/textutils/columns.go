package textutils

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

func sortLines(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("u n r")
	if err != nil {
		return p.Usage(2, err)
	}
	var all []string
	status := p.EachInput(o.Args, func(_ string, r io.Reader) int {
		lines(ctx, r, func(line string) bool { all = append(all, line); return true })
		return 0
	})
	slices.SortStableFunc(all, func(a, b string) int {
		c := cmp.Compare(a, b)
		if o.Has("n") {
			x, _ := strconv.Atoi(a)
			y, _ := strconv.Atoi(b)
			c = cmp.Or(cmp.Compare(x, y), c)
		}
		if o.Has("r") {
			c = -c
		}
		return c
	})
	if o.Has("u") {
		all = slices.Compact(all)
	}
	for _, line := range all {
		p.Printf("%s\n", line)
	}
	return status
}

// fieldSet parses a list of fields: 1,3-5,7-.
func fieldSet(s string) (func(int) bool, error) {
	type span struct{ from, to int }
	var spans []span
	for _, part := range strings.Split(s, ",") {
		from, to, both := strings.Cut(part, "-")
		sp := span{1, 1 << 30}
		var err error
		if from != "" {
			if sp.from, err = strconv.Atoi(from); err != nil {
				return nil, fmt.Errorf("invalid field value '%s'", from)
			}
		}
		switch {
		case !both:
			sp.to = sp.from
		case to != "":
			if sp.to, err = strconv.Atoi(to); err != nil {
				return nil, fmt.Errorf("invalid field value '%s'", to)
			}
		}
		spans = append(spans, sp)
	}
	return func(n int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return n >= s.from && n <= s.to })
	}, nil
}

func cut(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("d: f: c:")
	if err != nil {
		return p.Usage(1, err)
	}
	list := o.Value("f", "c")
	if list == "" {
		return p.Usage(1, errors.New("you must specify a list of bytes, characters, or fields"))
	}
	want, err := fieldSet(list)
	if err != nil {
		return p.Usage(1, err)
	}
	sep := o.Value("d")
	if sep == "" {
		sep = "\t"
	}
	return p.EachInput(o.Args, func(_ string, r io.Reader) int {
		lines(ctx, r, func(line string) bool {
			parts, join := strings.Split(line, sep), sep
			if o.Has("c") {
				parts, join = strings.Split(line, ""), ""
			} else if !strings.Contains(line, sep) {
				p.Printf("%s\n", line)
				return true
			}
			var kept []string
			for i, part := range parts {
				if want(i + 1) {
					kept = append(kept, part)
				}
			}
			p.Printf("%s\n", strings.Join(kept, join))
			return true
		})
		return 0
	})
}

// awkForm matches the only supported form of awk programs: [/regex/] { print $N, $NF }.
var awkForm = regexp.MustCompile(`^\s*(?:/((?:[^/\\]|\\.)*)/)?\s*\{\s*print\s+(\$(?:\d+|NF)(?:,\s*\$(?:\d+|NF))*)\s*\}\s*$`)

// awk implements programs that print columns of matching lines. It rejects all other programs.
func awk(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("")
	if err != nil || len(o.Args) == 0 {
		return p.Usage(2, errors.New("usage: awk program [file ...]"))
	}
	m := awkForm.FindStringSubmatch(o.Args[0])
	if m == nil {
		return p.Fail(2, "line 1: syntax error at or near %s", o.Args[0])
	}
	re, err := regexp.Compile(m[1])
	if err != nil {
		return p.Fail(2, "%v", err)
	}
	return p.EachInput(o.Args[1:], func(_ string, r io.Reader) int {
		lines(ctx, r, func(line string) bool {
			if !re.MatchString(line) {
				return true
			}
			f := append([]string{line}, strings.Fields(line)...)
			var out []string
			for _, item := range strings.Split(m[2], ",") {
				n, err := strconv.Atoi(strings.TrimLeft(item, " $"))
				if err != nil {
					n = len(f) - 1 // $NF
				}
				text := ""
				if n < len(f) {
					text = f[n]
				}
				out = append(out, text)
			}
			p.Printf("%s\n", strings.Join(out, " "))
			return true
		})
		return 0
	})
}

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
