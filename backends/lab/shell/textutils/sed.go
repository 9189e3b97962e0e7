package textutils

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// A sedCommand is d, p or s, for the last line, the lines that match an expression, or all.
type sedCommand struct {
	last          bool
	at            *regexp.Regexp
	verb          byte
	re            *regexp.Regexp
	with          string
	global, print bool
}

func parseSed(script string, extended bool) ([]sedCommand, error) {
	var list []sedCommand
	rest := script
	for {
		rest = strings.TrimLeft(rest, " \t;\n")
		if rest == "" {
			return list, nil
		}
		var c sedCommand
		var err error
		if rest[0] == '$' {
			c.last, rest = true, rest[1:]
		} else if rest[0] == '/' {
			expr, after, ok := delimited(rest[1:], '/')
			if !ok {
				return nil, fmt.Errorf("char %d: unterminated address regex", len(script))
			}
			if c.at, err = regex(expr, extended); err != nil {
				return nil, err
			}
			rest = after
		}
		rest = strings.TrimLeft(rest, " ")
		if rest == "" {
			return nil, fmt.Errorf("char %d: missing command", len(script))
		}
		c.verb, rest = rest[0], rest[1:]
		switch c.verb {
		case 'd', 'p':
		case 's':
			if rest, err = c.parseSubst(rest, extended); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("char %d: unknown command: `%c'", len(script)-len(rest), c.verb)
		}
		list = append(list, c)
	}
}

// delimited splits s at the first unescaped delimiter.
func delimited(s string, d byte) (part, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			if s[i+1] != d {
				b.WriteByte('\\')
			}
			i++
			b.WriteByte(s[i])
		case s[i] == d:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

func (c *sedCommand) parseSubst(s string, extended bool) (rest string, err error) {
	ok, expr, with := s != "", "", ""
	if ok {
		expr, rest, ok = delimited(s[1:], s[0])
	}
	if ok {
		with, rest, ok = delimited(rest, s[0])
	}
	if !ok {
		return "", fmt.Errorf("char %d: unterminated `s' command", len(s)+1)
	}
	for rest != "" && strings.ContainsRune("gp", rune(rest[0])) {
		c.global, c.print = c.global || rest[0] == 'g', c.print || rest[0] == 'p'
		rest = rest[1:]
	}
	if rest != "" && !strings.ContainsRune(" ;\n}", rune(rest[0])) {
		return "", fmt.Errorf("char %d: unknown option to `s'", len(s))
	}
	c.re, err = regex(expr, extended)
	c.with = sedGroup.ReplaceAllString(strings.ReplaceAll(with, "$", "$$"), "$${$1}")
	return rest, err
}

var sedGroup = regexp.MustCompile(`\\([0-9])`) // Go's ${1}

func (c *sedCommand) substitute(s string) (string, bool) {
	if c.global {
		return c.re.ReplaceAllString(s, c.with), c.re.MatchString(s)
	}
	at := c.re.FindStringSubmatchIndex(s)
	if at == nil {
		return s, false
	}
	return s[:at[0]] + string(c.re.ExpandString(nil, c.with, s, at)) + s[at[1]:], true
}

func runSed(ctx context.Context, r io.Reader, program []sedCommand, silent bool) string {
	var all []string
	lines(ctx, r, func(line string) bool { all = append(all, line); return true })
	var out strings.Builder
	for i, s := range all {
		deleted := false
		for _, c := range program {
			if deleted || c.last && i < len(all)-1 || c.at != nil && !c.at.MatchString(s) {
				continue
			}
			switch c.verb {
			case 'd':
				deleted = true
			case 'p':
				out.WriteString(s + "\n")
			case 's':
				changed := false
				if s, changed = c.substitute(s); changed && c.print {
					out.WriteString(s + "\n")
				}
			}
		}
		if !deleted && !silent {
			out.WriteString(s + "\n")
		}
	}
	return out.String()
}
