package coreutils

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func textPrograms() map[string]sh.Program {
	return map[string]sh.Program{
		"cat": cat, "tee": tee, "head": head, "tail": tail, "wc": wc, "sort": sortLines, "uniq": uniq, "cut": cut, "tr": tr,
		"cmp": compare, "diff": compare,
	}
}

func readAll(r io.Reader) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	return io.ReadAll(r)
}

// open opens an operand; "-" and none are standard input.
func open(p *sh.Proc, name string) (io.Reader, error) {
	if name == "-" || name == "/dev/stdin" {
		return p.Stdin, nil
	}
	f, err := p.Sys.FS.Open(p.User.Cred(), p.Path(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if i, _ := f.Stat(); i.IsDir() {
		return nil, syscall.EISDIR
	}
	return f, nil
}

// inputs runs do for each operand, or for standard input when there is none.
func inputs(p *sh.Proc, names []string, do func(name string, r io.Reader) int) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	status := 0
	for _, name := range names {
		r, err := open(p, name)
		if err != nil {
			status = max(status, p.Errorf("%s: %s", name, vfs.Reason(err)))
			continue
		}
		status = max(status, do(name, r))
	}
	return status
}

// lines calls do for every line, without its end, until do returns false.
func lines(ctx context.Context, r io.Reader, do func(line string) bool) {
	b := bufio.NewReader(r)
	for ctx.Err() == nil {
		line, err := b.ReadString('\n')
		if line != "" && !do(strings.TrimSuffix(line, "\n")) {
			return
		}
		if err != nil {
			return
		}
	}
}

func cat(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("n u A v e t")
	if err != nil {
		return p.Usage(1, err)
	}
	n := 0
	return inputs(p, o.Args, func(name string, r io.Reader) int {
		if o.Has("n") {
			lines(ctx, r, func(line string) bool { n++; p.Printf("%6d\t%s\n", n, line); return true })
			return 0
		}
		if _, err := io.Copy(p.Stdout, r); err != nil && ctx.Err() == nil && !errors.Is(err, syscall.EPIPE) {
			return p.Errorf("%s: %s", name, vfs.Reason(err))
		}
		return 0
	})
}

func tee(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("a i append")
	if err != nil {
		return p.Usage(1, err)
	}
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if o.Has("a", "append") {
		flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	status := 0
	out := []io.Writer{p.Stdout}
	var files []*vfs.File
	for _, name := range o.Args {
		f, err := p.Sys.FS.Open(p.User.Cred(), p.Path(name), flag, 0o644)
		if err != nil {
			status = p.Errorf("%s: %s", name, vfs.Reason(err))
			continue
		}
		files, out = append(files, f), append(out, f)
	}
	_, _ = io.Copy(io.MultiWriter(out...), p.Stdin)
	for _, f := range files {
		if err := f.Close(); err != nil {
			status = p.Errorf("%s: %s", f.Name(), vfs.Reason(err))
		}
	}
	return status
}

// count reads -n N, -N and -c N.
func count(p *sh.Proc) (o sh.Options, n int, plus bool, err error) {
	q := p
	if len(p.Args) > 1 && len(p.Args[1]) > 1 && p.Args[1][0] == '-' && unicode.IsDigit(rune(p.Args[1][1])) {
		q = p.With(append([]string{p.Args[0], "-n", p.Args[1][1:]}, p.Args[2:]...)...)
	}
	if o, err = q.Options("n: c: q v f F lines: bytes:"); err != nil {
		return
	}
	n = 10
	if v := o.Value("n", "c", "lines", "bytes"); v != "" {
		plus = strings.HasPrefix(v, "+")
		if n, err = strconv.Atoi(strings.TrimPrefix(v, "+")); err != nil {
			err = fmt.Errorf("invalid number of lines: '%s'", v)
		}
	}
	return
}

func head(ctx context.Context, p *sh.Proc) int {
	o, n, _, err := count(p)
	if err != nil {
		return p.Usage(1, err)
	}
	return inputs(p, o.Args, func(_ string, r io.Reader) int {
		if o.Has("c", "bytes") {
			_, _ = io.CopyN(p.Stdout, r, int64(n))
			return 0
		}
		left := n
		if left > 0 {
			lines(ctx, r, func(line string) bool { p.Printf("%s\n", line); left--; return left > 0 })
		}
		return 0
	})
}

func tail(ctx context.Context, p *sh.Proc) int {
	o, n, plus, err := count(p)
	if err != nil {
		return p.Usage(1, err)
	}
	status := inputs(p, o.Args, func(_ string, r io.Reader) int {
		if o.Has("c", "bytes") {
			data, _ := readAll(r)
			_, _ = p.Stdout.Write(data[max(0, len(data)-n):])
			return 0
		}
		var all []string
		lines(ctx, r, func(line string) bool { all = append(all, line); return true })
		from := len(all) - n
		if plus {
			from = n - 1
		}
		for _, line := range all[min(max(0, from), len(all)):] {
			p.Printf("%s\n", line)
		}
		return 0
	})
	if o.Has("f", "F") {
		<-ctx.Done()
	}
	return status
}

func wc(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("l w c m lines words bytes")
	if err != nil {
		return p.Usage(1, err)
	}
	return inputs(p, o.Args, func(name string, r io.Reader) int {
		data, _ := readAll(r)
		var cols []string
		all := !o.Has("l", "w", "c", "m", "lines", "words", "bytes")
		if all || o.Has("l", "lines") {
			cols = append(cols, strconv.Itoa(bytes.Count(data, []byte("\n"))))
		}
		if all || o.Has("w", "words") {
			cols = append(cols, strconv.Itoa(len(bytes.Fields(data))))
		}
		if all || o.Has("c", "m", "bytes") {
			cols = append(cols, strconv.Itoa(len(data)))
		}
		if name != "-" {
			cols = append(cols, name)
		}
		p.Printf("%s\n", strings.Join(cols, " "))
		return 0
	})
}

func sortLines(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("u n r V k: t: f b")
	if err != nil {
		return p.Usage(2, err)
	}
	var all []string
	status := inputs(p, o.Args, func(_ string, r io.Reader) int {
		lines(ctx, r, func(line string) bool { all = append(all, line); return true })
		return 0
	})
	key := func(s string) string {
		if o.Value("k") == "" {
			return s
		}
		n, _ := strconv.Atoi(strings.TrimRight(strings.SplitN(o.Value("k"), ",", 2)[0], "nrV"))
		f := strings.Fields(s)
		if t := o.Value("t"); t != "" {
			f = strings.Split(s, t)
		}
		if n < 1 || n > len(f) {
			return ""
		}
		return f[n-1]
	}
	slices.SortStableFunc(all, func(a, b string) int {
		ka, kb := key(a), key(b)
		c := cmp.Compare(ka, kb)
		if o.Has("n", "V") || strings.HasSuffix(o.Value("k"), "n") {
			x, _ := strconv.ParseFloat(leadingNumber(ka), 64)
			y, _ := strconv.ParseFloat(leadingNumber(kb), 64)
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

func leadingNumber(s string) string {
	s = strings.TrimSpace(s)
	end := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) && r != '.' && r != '-' })
	if end < 0 {
		return s
	}
	return s[:end]
}

func uniq(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("c d u")
	if err != nil {
		return p.Usage(1, err)
	}
	prev, n := "", 0
	flush := func() {
		switch {
		case n == 0 || o.Has("d") && n < 2 || o.Has("u") && n > 1:
		case o.Has("c"):
			p.Printf("%7d %s\n", n, prev)
		default:
			p.Printf("%s\n", prev)
		}
	}
	status := inputs(p, o.Args, func(_ string, r io.Reader) int {
		lines(ctx, r, func(line string) bool {
			if n > 0 && line != prev {
				flush()
				n = 0
			}
			prev, n = line, n+1
			return true
		})
		return 0
	})
	flush()
	return status
}

// fieldSet reads 1,3-5,7-.
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
	o, err := p.Options("d: f: c: b: s delimiter: fields: output-delimiter:")
	if err != nil {
		return p.Usage(1, err)
	}
	list := o.Value("f", "fields", "c", "b")
	if list == "" {
		return p.Usage(1, errors.New("you must specify a list of bytes, characters, or fields"))
	}
	want, err := fieldSet(list)
	if err != nil {
		return p.Usage(1, err)
	}
	sep := o.Value("d", "delimiter")
	if sep == "" {
		sep = "\t"
	}
	return inputs(p, o.Args, func(_ string, r io.Reader) int {
		lines(ctx, r, func(line string) bool {
			parts, join := strings.Split(line, sep), sep
			if o.Has("c", "b") {
				parts, join = strings.Split(line, ""), ""
			} else if !strings.Contains(line, sep) {
				if !o.Has("s") {
					p.Printf("%s\n", line)
				}
				return true
			}
			var kept []string
			for i, part := range parts {
				if want(i + 1) {
					kept = append(kept, part)
				}
			}
			if d := o.Value("output-delimiter"); d != "" {
				join = d
			}
			p.Printf("%s\n", strings.Join(kept, join))
			return true
		})
		return 0
	})
}

func compare(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("s q u brief silent quiet")
	if err != nil {
		return p.Usage(2, err)
	}
	if len(o.Args) != 2 {
		return p.Usage(2, errors.New("missing operand"))
	}
	var data [2][]byte
	for i, name := range o.Args {
		r, err := open(p, name)
		if err == nil {
			data[i], err = readAll(r)
		}
		if err != nil {
			return p.Fail(2, "%s: %s", name, vfs.Reason(err))
		}
	}
	if bytes.Equal(data[0], data[1]) {
		return 0
	}
	if !o.Has("s", "silent", "quiet") {
		p.Printf("Files %s and %s differ\n", o.Args[0], o.Args[1])
	}
	return 1
}
