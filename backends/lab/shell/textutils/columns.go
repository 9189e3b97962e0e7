package textutils

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
