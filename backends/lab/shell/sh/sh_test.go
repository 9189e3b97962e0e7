package sh_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/coreutils"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func system(t *testing.T) *sh.System {
	t.Helper()
	s := &sh.System{FS: vfs.New(time.Now), Programs: coreutils.Programs(), Now: time.Now, Dash: true}
	for name := range s.Programs {
		if err := s.Install(name, "/usr/bin/"+name); err != nil {
			t.Fatal(err)
		}
	}
	root := vfs.Root()
	for _, err := range []error{
		s.Install("cat", "/usr/sbin/onlyroot"), s.FS.MkdirAll(root, "/tmp", 0o777), s.FS.Mkdir(root, "/etc", 0o755),
		s.FS.Mkdir(root, "/dev", 0o755),
		s.FS.Mknod(root, "/dev/null", fs.ModeDevice|fs.ModeCharDevice|0o666),
		s.FS.WriteFile(root, "/etc/passwd", []byte("root:x:0:0::/root:/bin/sh\nkim:x:7:7::/tmp:/bin/bash\n"), 0o644),
		s.FS.WriteFile(root, "/etc/group", []byte("root:x:0:\nkim:x:7:\n"), 0o644),
		s.FS.WriteFile(root, "/tmp/py", []byte("#!/usr/bin/python3\n"), 0o755),
		s.FS.WriteFile(root, "/tmp/script", []byte("#!/usr/bin/sh\necho script $1\nnope\n"), 0o755),
		s.FS.WriteFile(root, "/tmp/plain", []byte("echo plain $1\n"), 0o755),
		s.FS.WriteFile(root, "/tmp/noexec", []byte("echo no\n"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func proc(s *sh.System, in string, args ...string) (*sh.Proc, *bytes.Buffer, *bytes.Buffer) {
	var out, stderr bytes.Buffer
	return &sh.Proc{Args: args, Stdin: strings.NewReader(in), Stdout: &out, Stderr: &stderr, Dir: "/tmp", Sys: s,
		User: sh.User{Name: "kim", UID: 7, GIDs: []int{7}, Home: "/tmp", Shell: "/usr/bin/bash"}, Session: &sh.Session{Memlock: 64},
		Env: []string{"PATH=/usr/bin", "HOME=/tmp"}}, &out, &stderr
}

func TestCommandLines(t *testing.T) {
	for _, tc := range []struct {
		name, shell, line, in string
		out, err              string
		status                int
	}{
		{"octal escapes of %b", "bash", `printf %b 'a\00475\0041\01341\\0041\n'`, "", "a'5!\\1\\0041\n", "", 0}, // as in bash and dash
		{"pipe and quoting", "bash", `printf '%s\n' 'a b' "c$((1+1))" | tail -n 1`, "", "c2\n", "", 0},
		{"redirection and append", "bash", "echo 1 >f; echo 2 >>f; cat f", "", "1\n2\n", "", 0},
		{"both streams", "bash", "{ echo out; echo err >&2; } >all 2>&1; cat all", "", "out\nerr\n", "", 0},
		{"here document", "bash", "cat <<'X'\n$HOME\nX\n", "", "$HOME\n", "", 0},
		{"command substitution", "sh", "x=$(echo hi); echo \"$x\"", "", "hi\n", "", 0},
		{"conditions on files", "sh", "[ -f /etc/passwd ] && [ ! -w /etc/passwd ] && echo yes", "", "yes\n", "", 0},
		{"globs", "sh", "echo /etc/*s*", "", "/etc/passwd\n", "", 0},
		{"reads standard input", "bash", "read x; read y; echo $y$x", "1\n2\n", "21\n", "", 0},
		{"leading bytes read by one program", "bash", "read x; cat", "first\nrest\n", "rest\n", "", 0},
		{"errexit", "bash", "set -e; false; echo never", "", "", "", 1},
		{"exit status", "bash", "exit 3", "", "", "", 3},
		{"trap", "bash", "trap 'echo bye' EXIT; echo hi", "", "hi\nbye\n", "", 0},
		{"functions", "bash", "f() { echo $1; }; f x", "", "x\n", "", 0},
		{"unknown, bash", "bash", "modprobe x", "", "", "bash: line 1: modprobe: command not found\n", 127},
		{"unknown, dash", "sh", "modprobe x", "", "", "sh: 1: modprobe: not found\n", 127},
		{"outside of PATH", "bash", "onlyroot", "", "", "bash: line 1: onlyroot: command not found\n", 127},
		{"by path", "bash", "echo x | /usr/sbin/onlyroot", "", "x\n", "", 0},
		{"not executable", "bash", "./noexec", "", "", "bash: line 1: ./noexec: Permission denied\n", 126},
		{"missing file", "bash", "./gone", "", "", "bash: line 1: ./gone: No such file or directory\n", 127},
		{"no python", "bash", "./py", "", "", "bash: line 1: ./py: /usr/bin/python3: bad interpreter: No such file or directory\n", 126},
		{"script", "bash", "./script a", "", "script a\n", "/tmp/script: 3: nope: not found\n", 127},
		{"script without first line", "bash", "./plain b", "", "plain b\n", "", 0},
		{"redirect refused", "bash", "echo x >/etc/new", "", "", "bash: line 1: /etc/new: Permission denied\n", 1},
		{"syntax", "bash", "if true", "", "", "bash: -c: line 1: syntax error: `if <cond>` must be followed by `then`\n", 2},
		{"bash only syntax in dash", "sh", "[[ a ]]", "", "", "sh: 1: [[: not found\n", 127},
		{"process substitution would reach the real disk", "bash", "cat <(echo x)", "", "",
			"bash: -c: line 1: syntax error: 1:5: process substitution is not to be had here\n", 2},
		{"command -v", "bash", "command -v cat cd nope", "", "/usr/bin/cat\ncd\n", "", 1},
		{"ulimit", "bash", "ulimit -l; ulimit -l 32; ulimit -l; ulimit -l unlimited", "", "64\n32\n",
			"ulimit: max locked memory: cannot modify limit: Operation not permitted\n", 1},
		{"umask", "bash", "umask 077; echo x >private; stat -c %a private", "", "600\n", "", 0},
		// As in bash and dash.
		{"constant words", "bash", `>axb; printf '%s|' 'it'\''s' a'*'b \'\' a''b '~'x "$HOME"'$HOME'; x=y'z'; ec'ho' 'a'b'` + "\n'c $x", "",
			"it's|a*b|''|ab|~x|/tmp$HOME|ab\nc yz\n", "", 0},
		{"constant words in dash", "sh", `printf '%s|' 'it'\''s' a'*'b '~'x ec'ho'`, "", "it's|a*b|~x|echo|", "", 0},
		{"words that expand beside quotes", "bash", `>axb; x=1; printf '%s|' a*'b' {p,q}'r' ~/'x' \*'q' $'\t'a 'v'$x "$x"'$x'`, "",
			"axb|pr|qr|/tmp/x|*q|\ta|v1|1$x|", "", 0},
		{"words that expand beside quotes in dash", "sh", `>axb; x=1; printf '%s|' a*'b' ~/'x' \*'q' 'v'$x "$x"'$x'`, "", "axb|/tmp/x|*q|v1|1$x|",
			"", 0},
		{"nested shell", "bash", "bash -c 'echo $0 $1' a b", "", "a b\n", "", 0},
		{"id", "bash", "id -un", "", "kim\n", "", 0},
		{"timeout", "bash", "timeout 0.05 sleep 5; echo $?", "", "124\n", "", 0},
		{"timeout with KILL", "bash", "timeout -s KILL 0.05 sleep 5; echo $?", "", "137\n", "", 0},
		{"reader that ends early", "bash", "seq 1 100000 | head -n 1", "", "1\n", "", 0},
		{"the shell is replaced", "bash", `exec /usr/bin/sh -c 'echo "$0" "$1"; exit 3' a:b 'c  d'`, "", "a:b c  d\n", "", 3},
		{"the shell is replaced, joined quotes", "bash", `exec /usr/bin/sh -c 'echo "$0-$1"' 'a'b $((1+1))`, "", "ab-2\n", "", 0},
		{"the shell is replaced by nothing", "bash", "exec /usr/bin/nope 'a'", "", "", "bash: line 1: /usr/bin/nope: No such file or directory\n",
			127},
		{"eval of escaped text", "bash",
			`exec /usr/bin/sh -c 'eval "$(printf %b "$1")"' x 'y=\0047a  b\0047\necho "$y" $2 $0; (exit 4)\n' 'mark'`, "", "a  b mark x\n", "", 4},
		{"eval of escaped text that is wrong", "sh", `exec /usr/bin/sh -c 'eval "$(printf %b "$1")"' x 'if'`, "", "",
			"sh: 1: Syntax error: `if` must be followed by a statement list\n", 2},
		{"unset leaves the environment", "bash", "export A=1 B=2; A=3; unset B; env | grep '^[AB]='", "", "A=3\n", "", 0},
		{"PID of the shell", "sh",
			`kill -0 $$ && (kill -0 "$$") && eval 'kill -0 ${$}' && sh -c 'kill -0 $1 && [ $1 != $$ ] && echo both run' x $$; env | grep PID`, "",
			"both run\n", "", 1},
		{"environment", "bash", "A=1 env | grep ^A=; env -i /usr/bin/env", "", "A=1\n", "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := system(t)
			p, out, stderr := proc(s, tc.in, tc.shell, "-c", tc.line)
			status, err := s.Exec(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != tc.out || stderr.String() != tc.err || status != tc.status {
				t.Errorf("got %q, %q, %d\nwant %q, %q, %d", out, stderr, status, tc.out, tc.err, tc.status)
			}
		})
	}
}

// The eval of a constant text is parsed with its script and must have the same result as when it runs separately. The second
// run uses the cached script, which the first run must not change.
func TestKeptScripts(t *testing.T) {
	s := system(t)
	s.Scripts = sh.NewScripts()
	line := `x=1; (eval 'printf "%s\037" a'\''b'\''c; x=2; exit 3'); echo "$? $x"; eval 'set -- 5'; eval 'if'; echo $1; eval exit`
	for range 3 {
		p, out, stderr := proc(s, "", "sh", "-c", line)
		status, err := s.Exec(t.Context(), p)
		if err != nil || status != 0 || out.String() != "abc\0373 1\n5\n" || !strings.Contains(stderr.String(), "eval") {
			t.Errorf("got %q, %q, %d, %v", out, stderr, status, err)
		}
	}
}

func TestScriptFromInput(t *testing.T) {
	s := system(t)
	p, out, _ := proc(s, "x=1\necho $x\nexit 4\necho never\n", "bash")
	status, err := s.Exec(t.Context(), p)
	if err != nil || status != 4 || out.String() != "1\n" {
		t.Errorf("got %q, %d, %v", out, status, err)
	}
}

// A signal must terminate a program that waits for input, and processes started by the shell must end with it.
func TestSignals(t *testing.T) {
	for _, tc := range []struct {
		line   string
		signal sh.Signal
		want   int
	}{
		{"sleep 60", sh.SIGTERM, 143},
		{"cat", sh.SIGKILL, 137},
		{"while true; do sleep 60; done", sh.SIGHUP, 129},
	} {
		t.Run(tc.line, func(t *testing.T) {
			s := system(t)
			p, _, _ := proc(s, "", "bash", "-c", tc.line)
			r, w := io.Pipe()
			defer w.Close()
			p.Stdin = r
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(20*time.Millisecond, func() { cancel(tc.signal) })
			status, err := s.Exec(ctx, p)
			if err != nil || status != tc.want {
				t.Errorf("got %d, %v, want %d", status, err, tc.want)
			}
			if left := s.Procs.List(); len(left) != 0 {
				t.Errorf("left behind: %+v", left)
			}
		})
	}
}

func TestProcessTable(t *testing.T) {
	s := system(t)
	line := `sleep 60 & sleep 0.05; pgrep sleep >/dev/null && echo found; pkill sleep; wait; pgrep -x sleep || echo gone`
	p, out, stderr := proc(s, "", "bash", "-c", line)
	status, err := s.Exec(t.Context(), p)
	if err != nil || status != 0 || out.String() != "found\ngone\n" {
		t.Errorf("got %q, %q, %d, %v", out, stderr, status, err)
	}
	if !p.Session.Detached() {
		t.Error("the session was not told of the background command")
	}
}
