package coreutils

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func miscPrograms() map[string]sh.Program {
	return map[string]sh.Program{
		"true": func(context.Context, *sh.Proc) int { return 0 }, "false": func(context.Context, *sh.Proc) int { return 1 },
		"echo": echo, "seq": seq, "id": id, "date": date,
		"sha256sum": checksum, "base64": base64Program, "groups": id,
	}
}

func echo(_ context.Context, p *sh.Proc) int {
	args, end := p.Args[1:], "\n"
	if len(args) > 0 && args[0] == "-n" {
		args, end = args[1:], ""
	}
	p.Printf("%s%s", strings.Join(args, " "), end)
	return 0
}

func seq(_ context.Context, p *sh.Proc) int {
	from, to := 1, 0
	var err error
	args := p.Args[1:]
	if len(args) == 2 {
		if from, err = strconv.Atoi(args[0]); err == nil {
			args = args[1:]
		}
	}
	if len(args) == 1 && err == nil {
		to, err = strconv.Atoi(args[0])
	}
	if err != nil || len(args) != 1 {
		return p.Usage(1, errors.New("invalid operand"))
	}
	for ; from <= to; from++ {
		p.Printf("%d\n", from)
	}
	return 0
}

func id(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("u g G n r")
	if err != nil {
		return p.Usage(1, err)
	}
	u := p.User
	name := func(file string, n int) string {
		if o.Has("n") || p.Name() == "groups" {
			return idName(p, file, n)
		}
		return strconv.Itoa(n)
	}
	var groups, named []string
	for _, g := range u.GIDs {
		groups = append(groups, name("/etc/group", g))
		named = append(named, fmt.Sprintf("%d(%s)", g, idName(p, "/etc/group", g)))
	}
	switch {
	case o.Has("u"):
		p.Printf("%s\n", name("/etc/passwd", u.UID))
	case o.Has("g"):
		p.Printf("%s\n", name("/etc/group", u.Cred().GID()))
	case o.Has("G"), p.Name() == "groups":
		p.Printf("%s\n", strings.Join(groups, " "))
	default:
		p.Printf("uid=%d(%s) gid=%s groups=%s\n", u.UID, u.Name, named[0], strings.Join(named, ","))
	}
	return 0
}

func date(_ context.Context, p *sh.Proc) int {
	now := p.Sys.Now().UTC()
	format := "%a %b %e %H:%M:%S UTC %Y"
	for _, a := range p.Args[1:] {
		switch {
		case strings.HasPrefix(a, "+"):
			format = a[1:]
		case a == "-u", a == "--utc":
		case a == "-Is", a == "--iso-8601=seconds":
			format = "%Y-%m-%dT%H:%M:%S+00:00"
		default:
			return p.Errorf("invalid date '%s'", a)
		}
	}
	p.Printf("%s\n", strings.NewReplacer("%s", strconv.FormatInt(now.Unix(), 10), "%N", fmt.Sprintf("%09d", now.Nanosecond()),
		"%F", now.Format(time.DateOnly), "%T", now.Format(time.TimeOnly), "%Y", now.Format("2006"), "%m", now.Format("01"),
		"%d", now.Format("02"), "%e", now.Format("_2"), "%H", now.Format("15"), "%M", now.Format("04"), "%S", now.Format("05"),
		"%a", now.Format("Mon"), "%b", now.Format("Jan"), "%z", "+0000", "%Z", "UTC", "%%", "%").Replace(format))
	return 0
}

func checksum(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("b t c")
	if err != nil || o.Has("c") {
		return p.Usage(1, errors.Join(err, errors.New("checking is not supported")))
	}
	return p.EachInput(o.Args, func(name string, r io.Reader) int {
		data, err := io.ReadAll(r)
		if err != nil {
			return p.Errorf("%s: %s", name, vfs.Reason(err))
		}
		p.Printf("%x  %s\n", sha256.Sum256(data), name)
		return 0
	})
}

func base64Program(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("d D i w: decode wrap:")
	if err != nil {
		return p.Usage(1, err)
	}
	return p.EachInput(o.Args, func(_ string, r io.Reader) int {
		data, _ := io.ReadAll(r)
		if o.Has("d", "D", "decode") {
			out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(data)), ""))
			_, _ = p.Stdout.Write(out)
			if err != nil {
				return p.Errorf("invalid input")
			}
			return 0
		}
		text, width := base64.StdEncoding.EncodeToString(data), 76
		if w := o.Value("w", "wrap"); w != "" {
			width, _ = strconv.Atoi(w)
		}
		for width > 0 && len(text) > width {
			p.Printf("%s\n", text[:width])
			text = text[width:]
		}
		if width > 0 {
			text += "\n"
		}
		p.Printf("%s", text)
		return 0
	})
}
