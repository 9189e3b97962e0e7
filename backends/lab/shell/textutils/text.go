// Package textutils implements programs that process lines: cat and similar programs, grep, sed and a subset of awk.
package textutils

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Programs returns the programs by name.
func Programs() map[string]sh.Program {
	return map[string]sh.Program{
		"cat": cat, "head": head, "tail": tail, "wc": wc, "sort": sortLines, "cut": cut, "tr": tr,
		"grep": grep, "sed": sed, "awk": awk,
	}
}

// lines calls do for every line, without its line ending, until do returns false.
func lines(ctx context.Context, r io.Reader, do func(line string) bool) {
	b := readers.Get().(*bufio.Reader)
	b.Reset(r)
	defer func() {
		b.Reset(nil)
		readers.Put(b)
	}()
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

var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

func cat(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("")
	if err != nil {
		return p.Usage(1, err)
	}
	return p.EachInput(o.Args, func(name string, r io.Reader) int {
		if _, err := sh.Copy(p.Stdout, r); err != nil && ctx.Err() == nil && !errors.Is(err, syscall.EPIPE) {
			return p.Errorf("%s: %s", name, vfs.Reason(err))
		}
		return 0
	})
}

// count parses the options -n N and -N.
func count(p *sh.Proc) (o sh.Options, n int, plus bool, err error) {
	q := p
	if len(p.Args) > 1 && len(p.Args[1]) > 1 && p.Args[1][0] == '-' && unicode.IsDigit(rune(p.Args[1][1])) {
		q = p.With(append([]string{p.Args[0], "-n", p.Args[1][1:]}, p.Args[2:]...)...)
	}
	if o, err = q.Options("n: q"); err != nil {
		return
	}
	n = 10
	if v := o.Value("n"); v != "" {
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
	return p.EachInput(o.Args, func(_ string, r io.Reader) int {
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
	return p.EachInput(o.Args, func(_ string, r io.Reader) int {
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
}

func wc(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("l c")
	if err != nil {
		return p.Usage(1, err)
	}
	return p.EachInput(o.Args, func(name string, r io.Reader) int {
		data, _ := io.ReadAll(r)
		var cols []string
		if !o.Has("c") {
			cols = append(cols, strconv.Itoa(bytes.Count(data, []byte("\n"))))
		}
		if !o.Has("l") {
			cols = append(cols, strconv.Itoa(len(data)))
		}
		if name != "-" {
			cols = append(cols, name)
		}
		p.Printf("%s\n", strings.Join(cols, " "))
		return 0
	})
}
