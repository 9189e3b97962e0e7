package coreutils

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
)

func processPrograms() map[string]sh.Program {
	return map[string]sh.Program{
		"sh": sh.Shell, "bash": sh.Shell, "dash": sh.Shell, "kill": kill, "pgrep": pgrep, "pkill": pgrep, "ps": ps,
		"timeout": timeout, "stdbuf": stdbuf, "nohup": nohup, "setsid": setsid, "flock": flock, "env": env, "xargs": xargs,
		"sleep": sleep,
	}
}

// run executes args in place of p.
func run(ctx context.Context, p *sh.Proc, args ...string) int {
	status, err := p.Sys.Exec(ctx, p.With(args...))
	if err != nil {
		status = 126
		if vfs.Reason(err) == "No such file or directory" {
			status = 127
		}
		return p.Fail(status, "failed to run command '%s': %s", args[0], vfs.Reason(err))
	}
	return status
}

func prefix(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("+n: f w")
	if err != nil {
		return p.Usage(1, err)
	}
	if len(o.Args) == 0 {
		return p.Usage(1, errors.New("missing operand"))
	}
	return run(ctx, p, o.Args...)
}

func nohup(ctx context.Context, p *sh.Proc) int {
	if len(p.Args) < 2 {
		return p.Usage(125, errors.New("missing operand"))
	}
	p.Sys.IgnoreHangup(p.PID)
	return run(ctx, p, p.Args[1:]...)
}

// Unbuffered is the environment variable by which stdbuf makes a program flush each line immediately.
const Unbuffered = "_STDBUF_O"

func stdbuf(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("+o: i: e: output: input: error:")
	if err != nil {
		return p.Usage(125, err)
	}
	if len(o.Args) == 0 {
		return p.Usage(125, errors.New("missing operand"))
	}
	child := p.With(o.Args...)
	if mode := o.Value("o", "output"); mode != "" {
		child.Setenv(Unbuffered, mode)
	}
	return run(ctx, child, o.Args...)
}

func env(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("+i u: ignore-environment unset:")
	if err != nil {
		return p.Usage(125, err)
	}
	child := p.With(p.Args...)
	if o.Has("i", "ignore-environment") {
		child.Env = []string{}
	}
	args := o.Args
	for len(args) > 0 && strings.Contains(args[0], "=") {
		key, value, _ := strings.Cut(args[0], "=")
		child.Setenv(key, value)
		args = args[1:]
	}
	if len(args) == 0 {
		for _, kv := range child.Environ() {
			p.Printf("%s\n", kv)
		}
		return 0
	}
	return run(ctx, child, args...)
}

// seconds parses a duration: 10, 0.5, 3s, 2m.
func seconds(s string) (time.Duration, bool) {
	unit := time.Second
	if s != "" {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[len(s)-1]]; ok {
			unit, s = u, s[:len(s)-1]
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	return time.Duration(f * float64(unit)), err == nil && f >= 0
}

func sleep(ctx context.Context, p *sh.Proc) int {
	var total time.Duration
	if len(p.Args) < 2 {
		return p.Usage(1, errors.New("missing operand"))
	}
	for _, a := range p.Args[1:] {
		d, ok := seconds(a)
		if !ok {
			return p.Errorf("invalid time interval '%s'", a)
		}
		total += d
	}
	timing.Sleep(ctx, p.Sys.Clock.OfSleep(total))
	return 0
}

func timeout(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("+k: s: v foreground preserve-status kill-after: signal: verbose")
	if err != nil {
		return p.Usage(125, err)
	}
	if len(o.Args) < 2 {
		return p.Usage(125, errors.New("missing operand"))
	}
	d, ok := seconds(o.Args[0])
	if !ok {
		return p.Fail(125, "invalid time interval '%s'", o.Args[0])
	}
	sig, ok := signal(o.Value("s", "signal"))
	if !ok {
		return p.Fail(125, "'%s': invalid signal", o.Value("s", "signal"))
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if d > 0 {
		t := time.AfterFunc(d, func() { cancel(sig) })
		defer t.Stop()
	}
	status := run(inner, p, o.Args[1:]...)
	if inner.Err() != nil && ctx.Err() == nil && !o.Has("preserve-status") {
		if sig == sh.SIGKILL {
			return sh.SIGKILL.Status()
		}
		return 124
	}
	return status
}

func signal(s string) (sh.Signal, bool) {
	if s == "" {
		return sh.SIGTERM, true
	}
	if n, err := strconv.Atoi(s); err == nil {
		return sh.Signal(n), n >= 0 && n < 65
	}
	sig, ok := sh.Signals()[strings.TrimPrefix(strings.ToUpper(s), "SIG")]
	return sig, ok
}

func kill(_ context.Context, p *sh.Proc) int {
	args, sig := p.Args[1:], sh.SIGTERM
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		name := args[0][1:]
		args = args[1:]
		if name == "s" && len(args) > 0 {
			name, args = args[0], args[1:]
		}
		var ok bool
		if sig, ok = signal(name); !ok {
			return p.Errorf("%s: invalid signal specification", name)
		}
	}
	status := 0
	for _, a := range args {
		pid, err := strconv.Atoi(a)
		if err != nil {
			status = p.Errorf("%s: arguments must be process or job IDs", a)
			continue
		}
		status = max(status, send(p, pid, sig))
	}
	return status
}

func send(p *sh.Proc, pid int, sig sh.Signal) int {
	for _, r := range p.Sys.Procs.List() {
		if r.PID != pid {
			continue
		}
		if !p.Root() && r.User.UID != p.User.UID {
			return p.Errorf("(%d) - Operation not permitted", pid)
		}
		if sig != 0 {
			p.Sys.Procs.Kill(pid, sig)
		}
		return 0
	}
	return p.Errorf("(%d) - No such process", pid)
}

func pgrep(_ context.Context, p *sh.Proc) int {
	args, sig := p.Args[1:], sh.SIGTERM
	if p.Name() == "pkill" && len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if s, ok := signal(args[0][1:]); ok {
			sig, args = s, args[1:]
		}
	}
	o, err := p.With(append(p.Args[:1:1], args...)...).Options("f x a")
	if err != nil {
		return p.Usage(2, err)
	}
	if len(o.Args) != 1 {
		return p.Usage(2, errors.New("no matching criteria specified"))
	}
	expr := o.Args[0]
	if o.Has("x") {
		expr = "^(?:" + expr + ")$"
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return p.Fail(2, "%v", err)
	}
	status := 1
	for _, r := range p.Sys.Procs.List() {
		name := r.Args[0][strings.LastIndex(r.Args[0], "/")+1:]
		if o.Has("f") {
			name = strings.Join(r.Args, " ")
		}
		if r.PID == p.PID || !re.MatchString(name) {
			continue
		}
		switch {
		case p.Name() == "pkill":
			if send(p, r.PID, sig) == 0 {
				status = 0
			}
			continue
		case o.Has("a"):
			p.Printf("%d %s\n", r.PID, strings.Join(r.Args, " "))
		default:
			p.Printf("%d\n", r.PID)
		}
		status = 0
	}
	return status
}

func ps(_ context.Context, p *sh.Proc) int {
	p.Printf("    PID TTY          TIME CMD\n")
	for _, r := range p.Sys.Procs.List() {
		p.Printf("%7d ?        00:00:00 %s\n", r.PID, strings.Join(r.Args, " "))
	}
	return 0
}

func xargs(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("+n:")
	if err != nil {
		return p.Usage(1, err)
	}
	data, _ := io.ReadAll(p.Stdin)
	items := strings.Fields(string(data))
	if run(ctx, p, append(slices.Clone(o.Args), items...)...) != 0 {
		return 123
	}
	return 0
}
