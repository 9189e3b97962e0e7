package textutils

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// compiled caches expressions by their text, because the guests of a lab run the same scripts.
var compiled struct {
	sync.Mutex
	byText map[string]*regexp.Regexp
}

func compile(text string) (*regexp.Regexp, error) {
	compiled.Lock()
	defer compiled.Unlock()
	re := compiled.byText[text]
	if re != nil {
		return re, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	if len(compiled.byText) == 200 || compiled.byText == nil {
		compiled.byText = map[string]*regexp.Regexp{}
	}
	compiled.byText[text] = re
	return re, nil
}

var wordEnds = strings.NewReplacer(`\<`, `\b`, `\>`, `\b`)

// regex converts a POSIX regular expression to Go's syntax. In basic expressions, \( \) \{ \} \| \+ \? are the operators.
func regex(expr string, extended bool) (*regexp.Regexp, error) {
	expr = wordEnds.Replace(expr)
	if extended {
		return compile(expr)
	}
	var b strings.Builder
	class := false
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		switch {
		case class:
			class = c != ']' || strings.HasSuffix(expr[:i], "[") || strings.HasSuffix(expr[:i], "[^")
			b.WriteByte(c)
		case c == '[':
			class = true
			b.WriteByte(c)
		case c == '\\' && i+1 < len(expr):
			i++
			if !strings.ContainsRune(`(){}|+?`, rune(expr[i])) {
				b.WriteByte('\\')
			}
			b.WriteByte(expr[i])
		case strings.ContainsRune(`(){}|+?`, rune(c)), c == '*' && b.Len() == 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return compile(b.String())
}

func grep(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("E F q v i c l o w h n s e:")
	if err != nil {
		return p.Usage(2, err)
	}
	patterns, names := o.Values("e"), o.Args
	if len(patterns) == 0 {
		if len(names) == 0 {
			return p.Usage(2, errors.New("missing pattern"))
		}
		patterns, names = names[:1], names[1:]
	}
	match, err := grepMatcher(p, o, patterns)
	if err != nil {
		return p.Fail(2, "%v", err)
	}
	quiet := o.Has("q")
	found, trouble := false, 0
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		r, err := p.Input(name)
		if err != nil {
			if !o.Has("s") {
				p.Errorf("%s: %s", name, vfs.Reason(err))
			}
			trouble = 2
			continue
		}
		prefix := ""
		if len(names) > 1 && !o.Has("h") {
			prefix = name + ":"
		}
		n, line := 0, 0
		lines(ctx, r, func(s string) bool {
			line++
			hits := match.FindAllString(s, -1)
			if (hits != nil) == o.Has("v") {
				return true
			}
			found = true
			n++
			number := ""
			if o.Has("n") {
				number = fmt.Sprintf("%d:", line)
			}
			switch {
			case quiet:
				return false
			case o.Has("c", "l"):
			case o.Has("o"):
				for _, h := range hits {
					p.Printf("%s%s%s\n", prefix, number, h)
				}
			default:
				p.Printf("%s%s%s\n", prefix, number, s)
			}
			return !o.Has("l")
		})
		switch {
		case quiet:
		case o.Has("l") && n > 0:
			p.Printf("%s\n", name)
		case o.Has("c"):
			p.Printf("%s%d\n", prefix, n)
		}
	}
	switch {
	case found && (quiet || trouble == 0):
		return 0
	case trouble != 0:
		return trouble
	}
	return 1
}

func grepMatcher(p *sh.Proc, o sh.Options, patterns []string) (*regexp.Regexp, error) {
	var alternatives []string
	for _, pattern := range patterns {
		if o.Has("F") {
			pattern = regexp.QuoteMeta(pattern)
		} else {
			re, err := regex(pattern, o.Has("E"))
			if err != nil {
				return nil, fmt.Errorf("%s: invalid regular expression", pattern)
			}
			pattern = re.String()
		}
		alternatives = append(alternatives, "(?:"+pattern+")")
	}
	expr := strings.Join(alternatives, "|")
	if o.Has("w") {
		expr = `\b(?:` + expr + `)\b`
	}
	if o.Has("i") {
		expr = "(?i)" + expr
	}
	return compile(expr)
}

// sed supports the commands s, d and p with $ or /regex/ as address, and the options -n, -i and -E.
func sed(ctx context.Context, p *sh.Proc) int {
	args := p.Args
	inPlace := false
	for i, a := range args {
		if a == "-i" && i > 0 {
			inPlace = true
			args = append(append([]string{}, args[:i]...), args[i+1:]...)
			break
		}
	}
	o, err := p.With(args...).Options("n E e:")
	if err != nil {
		return p.Usage(1, err)
	}
	scripts, names := o.Values("e"), o.Args
	if len(scripts) == 0 {
		if len(names) == 0 {
			return p.Usage(1, errors.New("no script specified"))
		}
		scripts, names = names[:1], names[1:]
	}
	var program []sedCommand
	for _, s := range scripts {
		commands, err := parseSed(s, o.Has("E"))
		if err != nil {
			return p.Errorf("-e expression #1, %v", err)
		}
		program = append(program, commands...)
	}
	if inPlace && len(names) == 0 {
		return p.Errorf("no input files")
	}
	return p.EachInput(names, func(name string, r io.Reader) int {
		out, status := runSed(ctx, r, program, o.Has("n")), 0
		if !inPlace {
			_, _ = io.WriteString(p.Stdout, out)
			return status
		}
		return replaceFile(p, name, out)
	})
}

func replaceFile(p *sh.Proc, name, data string) int {
	c, f := p.User.Cred(), p.Sys.FS
	info, err := f.Stat(c, p.Path(name))
	if err != nil {
		return p.Errorf("couldn't edit %s: %s", name, vfs.Reason(err))
	}
	tmp := path.Join(path.Dir(p.Path(name)), "sedAb3xYz")
	if err := f.WriteFile(c, tmp, []byte(data), fs.FileMode(0o600)); err != nil {
		return p.Fail(4, "couldn't open temporary file %s: %s", tmp, vfs.Reason(err))
	}
	_ = f.Chmod(c, tmp, info.Mode())
	_ = f.Chown(c, tmp, info.UID, info.GID)
	if err := f.Rename(c, tmp, p.Path(name)); err != nil {
		return p.Fail(4, "cannot rename %s: %s", tmp, vfs.Reason(err))
	}
	return 0
}
