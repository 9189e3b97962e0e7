package textutils

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

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
