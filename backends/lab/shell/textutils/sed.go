package textutils

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

type sedAddress struct {
	line int // 0: none
	last bool
	re   *regexp.Regexp
}

func (a sedAddress) set() bool { return a.line > 0 || a.last || a.re != nil }

func (a sedAddress) matches(n int, last bool, s string) bool {
	switch {
	case a.re != nil:
		return a.re.MatchString(s)
	case a.last:
		return last
	}
	return a.line == n
}

type sedCommand struct {
	from, to sedAddress
	negate   bool
	verb     byte
	re       *regexp.Regexp
	with     string
	global   bool
	print    bool
	text     string // text of a, i and c
	inside   bool   // state: inside the range
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
		if c.from, rest, err = parseAddress(rest, extended); err != nil {
			return nil, err
		}
		if strings.HasPrefix(rest, ",") && c.from.set() {
			if c.to, rest, err = parseAddress(rest[1:], extended); err != nil {
				return nil, err
			}
		}
		rest = strings.TrimLeft(rest, " ")
		if strings.HasPrefix(rest, "!") {
			c.negate, rest = true, strings.TrimLeft(rest[1:], " ")
		}
		if rest == "" {
			return nil, fmt.Errorf("char %d: missing command", len(script))
		}
		c.verb, rest = rest[0], rest[1:]
		switch c.verb {
		case 'd', 'p', 'q':
		case 'a', 'i', 'c':
			text := strings.TrimLeft(strings.TrimPrefix(rest, `\`), " \t\n")
			c.text, rest, _ = strings.Cut(text, "\n")
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

func parseAddress(s string, extended bool) (sedAddress, string, error) {
	var a sedAddress
	switch {
	case s == "":
	case s[0] == '$':
		a.last, s = true, s[1:]
	case s[0] == '/':
		expr, rest, ok := delimited(s[1:], '/')
		if !ok {
			return a, "", fmt.Errorf("char %d: unterminated address regex", len(s))
		}
		re, err := regex(expr, extended)
		if err != nil {
			return a, "", err
		}
		a.re, s = re, rest
	default:
		end := len(s) - len(strings.TrimLeft(s, "0123456789"))
		a.line, _ = strconv.Atoi(s[:end])
		s = s[end:]
	}
	return a, s, nil
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

func (c *sedCommand) parseSubst(s string, extended bool) (string, error) {
	if s == "" {
		return "", fmt.Errorf("char 1: unterminated `s' command")
	}
	expr, rest, ok := delimited(s[1:], s[0])
	with := ""
	if ok {
		with, rest, ok = delimited(rest, s[0])
	}
	if !ok {
		return "", fmt.Errorf("char %d: unterminated `s' command", len(s)+1)
	}
	prefix := ""
	for rest != "" && strings.ContainsRune("gpIi", rune(rest[0])) {
		switch rest[0] {
		case 'g':
			c.global = true
		case 'p':
			c.print = true
		default:
			prefix = "(?i)"
		}
		rest = rest[1:]
	}
	if rest != "" && !strings.ContainsRune(" ;\n}", rune(rest[0])) {
		return "", fmt.Errorf("char %d: unknown option to `s'", len(s))
	}
	re, err := regex(expr, extended)
	if err != nil {
		return "", err
	}
	if c.re, err = regexp.Compile(prefix + re.String()); err != nil {
		return "", err
	}
	c.with = goTemplate(with)
	return rest, nil
}

// goTemplate converts sed's & and \1 to Go's ${0} and ${1}.
func goTemplate(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '$':
			b.WriteString("$$")
		case s[i] == '&':
			b.WriteString("${0}")
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch {
			case s[i] >= '0' && s[i] <= '9':
				fmt.Fprintf(&b, "${%c}", s[i])
			case s[i] == 'n':
				b.WriteByte('\n')
			case s[i] == 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func (c *sedCommand) applies(n int, last bool, s string) bool {
	hit := true
	switch {
	case c.to.set() && c.inside:
		c.inside = !c.to.matches(n, last, s)
	case c.to.set():
		hit = c.from.matches(n, last, s)
		c.inside = hit && (c.to.line == 0 || c.to.line > n)
	case c.from.set():
		hit = c.from.matches(n, last, s)
	}
	return hit != c.negate
}

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
	commands := append([]sedCommand(nil), program...)
	var out, after strings.Builder
	for i, s := range all {
		deleted, quit := false, false
		after.Reset()
		for k := range commands {
			c := &commands[k]
			if !c.applies(i+1, i == len(all)-1, s) {
				continue
			}
			switch c.verb {
			case 'd':
				deleted = true
			case 'q':
				quit = true
			case 'p':
				out.WriteString(s + "\n")
			case 'i':
				out.WriteString(c.text + "\n")
			case 'a':
				after.WriteString(c.text + "\n")
			case 'c':
				out.WriteString(c.text + "\n")
				deleted = true
			case 's':
				changed := false
				if s, changed = c.substitute(s); changed && c.print {
					out.WriteString(s + "\n")
				}
			}
			if deleted || quit {
				break
			}
		}
		if !deleted && !silent {
			out.WriteString(s + "\n")
		}
		out.WriteString(after.String())
		if quit {
			break
		}
	}
	return out.String()
}
