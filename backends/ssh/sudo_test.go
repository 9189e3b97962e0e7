package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// fakeSudo creates a sudo that answers as the real one does in the given case, and an id that reports a user other than root. Its
// messages are those of sudo 1.9.13.
func fakeSudo(t *testing.T, mode string) string {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
mode=` + mode + `
n=; s=
while :; do case $1 in -n) n=1 ;; -S) s=1 ;; -p) shift ;; --) shift; break ;; *) break ;; esac; shift; done
case $mode in
nopasswd) exec env AS=root "$@" ;;
tty) echo 'sudo: sorry, you must have a tty to run sudo' >&2; exit 1 ;;
never) echo 'nosudo is not in the sudoers file.' >&2; exit 1 ;;
esac
[ -n "$n" ] && { echo 'sudo: a password is required' >&2; exit 1; }
[ $mode = cached ] && exec env AS=root "$@"
echo 'We trust you have received the usual lecture.' >&2
tries=0
while IFS= read -r word; do
	tries=$((tries + 1))
	echo "$word" >>"$0.tried"
	if [ "$word" = 'it is "$ecret"' ]; then
		[ $mode = listed ] && { echo 'ops is not in the sudoers file.' >&2; exit 1; }
		exec env AS=root "$@"
	fi
	echo 'Sorry, try again.' >&2
	[ $tries = 3 ] && break
done
echo 'sudo: no password was provided' >&2
echo "sudo: $tries incorrect password attempt" >&2
exit 1
`
	for name, text := range map[string]string{"sudo": script, "id": "#!/bin/sh\necho 1000\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSudo(t *testing.T) {
	const right = `it is "$ecret"`
	for _, test := range []struct {
		name, mode, password string
		how                  string
		want                 error
		kind                 backends.ErrorKind
	}{
		{"without a password", "nopasswd", "", ssh.SudoNoPassword, nil, ""},
		{"with a password", "password", right, ssh.SudoPassword, nil, ""},
		{"sudo does not ask although it said so", "cached", right, ssh.SudoPassword, nil, ""},
		{"wrong password", "password", "wrong", ssh.SudoPassword, ssh.ErrSudoPassword, backends.KindAuth},
		{"no password to give", "password", "", ssh.SudoPassword, ssh.ErrSudoAsks, backends.KindAuth},
		{"not a sudoer", "never", "", ssh.SudoNone, ssh.ErrNotSudoer, backends.KindPermission},
		{"not a sudoer, said after the password", "listed", right, ssh.SudoPassword, ssh.ErrNotSudoer, backends.KindPermission},
		{"requiretty", "tty", "", ssh.SudoNone, ssh.ErrSudoTTY, backends.KindPermission},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := fakeSudo(t, test.mode)
			s := startServer(t, func(s *server) { s.path = dir + ":" + s.path })
			c := dial(t, s, func(c *ssh.Config) {
				c.SudoPassword = func(context.Context, ssh.Target) (string, error) { return test.password, nil }
			})
			if how, _ := c.Sudo(t.Context()); how != test.how {
				t.Errorf("root is reached by %q, want %q", how, test.how)
			}
			r, err := c.Run(t.Context(), ssh.Command{Script: "echo $AS $SSH_CONNECTION; cat; exit 4", Stdin: []byte("content\nof two lines"),
				Sudo: true})
			if !errors.Is(err, test.want) || backends.KindOf(err) != test.kind {
				t.Fatalf("error %v of kind %q", err, backends.KindOf(err))
			}
			if err == nil && (r.Stdout != "root 192.0.2.1 50000 192.0.2.2 22\ncontent\nof two lines" || r.ExitCode != 4 || r.Stderr != "") {
				t.Errorf("stdout %q, stderr %q, exit code %d", r.Stdout, r.Stderr, r.ExitCode)
			}
			if err != nil && backends.HintOf(err) == "" {
				t.Error("no hint")
			}
			tried, _ := os.ReadFile(filepath.Join(dir, "sudo.tried"))
			if n := strings.Count(string(tried), "\n"); n > 2 || n > 1 && test.password != right || strings.Contains(string(tried), "content") {
				t.Errorf("tried as passwords: %q", tried)
			}
			if test.password != "" && strings.Contains(s.lines(), test.password) {
				t.Error("the password is on a command line")
			}
		})
	}
}

func TestAWrongSudoPasswordIsTriedOnce(t *testing.T) {
	dir := fakeSudo(t, "password")
	c := dial(t, startServer(t, func(s *server) { s.path = dir + ":" + s.path }), func(c *ssh.Config) {
		c.SudoPassword = func(context.Context, ssh.Target) (string, error) { return "wrong", nil }
	})
	for range 3 {
		if _, err := c.Run(t.Context(), ssh.Command{Script: "true", Sudo: true}); !errors.Is(err, ssh.ErrSudoPassword) {
			t.Fatal(err)
		}
	}
	if tried, _ := os.ReadFile(filepath.Join(dir, "sudo.tried")); string(tried) != "wrong\n" {
		t.Errorf("tried %q", tried)
	}
}

func TestSudoAsksAgainAfterAWrongPassword(t *testing.T) {
	dir := fakeSudo(t, "password")
	answers := []string{"wrong", `it is "$ecret"`}
	c := dial(t, startServer(t, func(s *server) { s.path = dir + ":" + s.path }), func(c *ssh.Config) {
		c.SudoPassword = func(context.Context, ssh.Target) (string, error) {
			a := answers[0]
			answers = answers[1:]
			return a, nil
		}
	})
	for range 2 {
		if r, err := c.Run(t.Context(), ssh.Command{Script: "echo $AS", Sudo: true}); err != nil || r.Stdout != "root\n" {
			t.Fatalf("%q %v", r.Stdout, err)
		}
	}
}

// TestSudoIsAskedOnceByAll runs four commands at once: each wrong password is tried once, and the third one ends it.
func TestSudoIsAskedOnceByAll(t *testing.T) {
	dir := fakeSudo(t, "password")
	var asked atomic.Int64
	c := dial(t, startServer(t, func(s *server) { s.path = dir + ":" + s.path }), func(c *ssh.Config) {
		c.SudoPassword = func(context.Context, ssh.Target) (string, error) { return fmt.Sprint("wrong ", asked.Add(1)), nil }
	})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := c.Run(t.Context(), ssh.Command{Script: "true", Sudo: true}); backends.KindOf(err) != backends.KindAuth {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if tried, _ := os.ReadFile(filepath.Join(dir, "sudo.tried")); string(tried) != "wrong 1\nwrong 2\nwrong 3\n" || asked.Load() != 3 {
		t.Errorf("asked %d times, tried %q", asked.Load(), tried)
	}
}

// After three refused passwords the operator is asked again only after asking for it.
func TestSudoIsAskedForAgain(t *testing.T) {
	dir := fakeSudo(t, "password")
	s := startServer(t, func(s *server) { s.path = dir + ":" + s.path })
	answers := []string{"wrong 1", "wrong 2", "wrong 3", "wrong 1", `it is "$ecret"`}
	c := trusting(t, s)
	c.SudoPassword = func(context.Context, ssh.Target) (string, error) {
		a := answers[0]
		answers = answers[1:]
		return a, nil
	}
	pool := newPool(t, c)
	conn, err := pool.Dial(t.Context(), s.target("guest vm-01"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	root := func() error {
		_, err := conn.Run(t.Context(), ssh.Command{Script: "true", Sudo: true})
		return err
	}
	for range 2 {
		if err := root(); backends.KindOf(err) != backends.KindAuth || len(answers) != 2 {
			t.Fatalf("%v, %d answers left", err, len(answers))
		}
	}
	pool.AskAgain()
	if err := root(); !errors.Is(err, ssh.ErrSudoPassword) || len(answers) != 1 {
		t.Fatalf("%v, %d answers left", err, len(answers))
	}
	if err := root(); err != nil {
		t.Error(err)
	}
	if tried, _ := os.ReadFile(filepath.Join(dir, "sudo.tried")); strings.Count(string(tried), "wrong") != 3 {
		t.Errorf("tried %q", tried)
	}
}

// TestARefusedLoginPasswordIsNotSentAgain logs in twice with the password that the server refuses.
func TestARefusedLoginPasswordIsNotSentAgain(t *testing.T) {
	s := startServer(t, nil)
	c := trusting(t, s)
	told := 0
	c.Password = func(context.Context, ssh.Target) (string, error) { return "close sesame", nil }
	c.PasswordRefused = func(ssh.Target, string) { told++ }
	p := newPool(t, c)
	for i := range 3 {
		_, err := p.Dial(t.Context(), s.target("esx-01"))
		if !errors.Is(err, ssh.ErrLogin) || i > 0 && !strings.Contains(err.Error(), "not sent again") {
			t.Errorf("login %d: %v", i+1, err)
		}
	}
	if told != 1 {
		t.Errorf("a refused password was reported %d times", told)
	}
}
