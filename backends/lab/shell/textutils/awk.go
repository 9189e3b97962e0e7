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

// awkForm matches the only supported form of awk programs: [/regex/ | $N op "text"] { print [expressions] }.
var awkForm = regexp.MustCompile(`^\s*(?:/((?:[^/\\]|\\.)*)/|\$(\d+)\s*(==|!=|~)\s*(?:"([^"]*)"|/([^/]*)/)|NR\s*==\s*(\d+))?\s*(?:\{\s*print\s*([^;}]*?);?\s*(exit)?\s*\})?\s*$`)

// awk implements programs that print columns of matching lines. It rejects all other programs.
func awk(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("F: v:")
	if err != nil {
		return p.Usage(2, err)
	}
	if len(o.Args) == 0 {
		return p.Usage(2, errors.New("usage: awk program [file ...]"))
	}
	m := awkForm.FindStringSubmatch(o.Args[0])
	if m == nil || strings.TrimSpace(o.Args[0]) == "" {
		return p.Fail(2, "line 1: syntax error at or near %s", o.Args[0])
	}
	var re *regexp.Regexp
	for _, expr := range []string{m[1], m[5]} {
		if expr == "" {
			continue
		}
		if re, err = regexp.Compile(expr); err != nil {
			return p.Fail(2, "%v", err)
		}
	}
	nr := 0
	return p.EachInput(o.Args[1:], func(_ string, r io.Reader) int {
		lines(ctx, r, func(line string) bool {
			nr++
			f := strings.Fields(line)
			if sep := o.Value("F"); sep != "" {
				f = strings.Split(line, sep)
			}
			column := func(s string) string {
				n, _ := strconv.Atoi(s)
				switch {
				case n == 0:
					return line
				case n > len(f):
					return ""
				}
				return f[n-1]
			}
			hit := true
			switch {
			case m[6] != "":
				hit = m[6] == strconv.Itoa(nr)
			case m[2] != "" && m[3] == "~":
				hit = re != nil && re.MatchString(column(m[2]))
			case m[2] != "":
				hit = (column(m[2]) == m[4]) == (m[3] == "==")
			case re != nil:
				hit = re.MatchString(line)
			}
			if hit {
				p.Printf("%s\n", awkPrint(m[7], line, len(f), column))
			}
			return !hit || m[8] == ""
		})
		return 0
	})
}

var awkItem = regexp.MustCompile(`^\s*(?:"((?:[^"\\]|\\.)*)"|\$NF|\$(\d+)|NF)\s*(,?)`)

func awkPrint(list, line string, nf int, column func(string) string) string {
	if strings.TrimSpace(list) == "" {
		return line
	}
	var b strings.Builder
	for list != "" {
		m := awkItem.FindStringSubmatch(list)
		if m == nil {
			break
		}
		switch text := strings.TrimSpace(m[0]); {
		case strings.HasPrefix(text, "$NF"):
			b.WriteString(column(strconv.Itoa(nf)))
		case strings.HasPrefix(text, "NF"):
			b.WriteString(strconv.Itoa(nf))
		case m[2] != "":
			b.WriteString(column(m[2]))
		default:
			b.WriteString(strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`).Replace(m[1]))
		}
		if m[3] != "" {
			b.WriteByte(' ')
		}
		list = list[len(m[0]):]
	}
	return b.String()
}
