package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/live"
)

// person answers prompts for secrets with these answers; same is the answer to whether one password applies to all hosts.
func person(asked *[]string, same bool, answers ...string) *console.Env {
	return &console.Env{
		Terminal: func() bool { return true },
		Secret: func(prompt string) (string, error) {
			*asked = append(*asked, prompt)
			answer := answers[0]
			answers = answers[1:]
			return answer, nil
		},
		Confirm: func(string) (bool, error) { return same, nil },
	}
}

func passwords(t *testing.T, s *Session, hosts ...string) []string {
	t.Helper()
	var out []string
	for _, h := range hosts {
		p, err := s.esxiPassword(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func TestPasswordsOfESXiHosts(t *testing.T) {
	var asked []string
	s := &Session{Env: person(&asked, true, "all"), Set: &console.Settings{}}
	if got := passwords(t, s, "a", "b", "a"); !slices.Equal(got, []string{"all", "all", "all"}) || len(asked) != 1 {
		t.Errorf("same for the others: %q after %q", got, asked)
	}
	asked = nil
	s = &Session{Env: person(&asked, false, "1", "2"), Set: &console.Settings{}}
	if got := passwords(t, s, "a", "b", "a", "b"); !slices.Equal(got, []string{"1", "2", "1", "2"}) || len(asked) != 2 {
		t.Errorf("one for each: %q after %q", got, asked)
	}
	asked = nil
	s = &Session{Env: person(&asked, false, "right"), Set: &console.Settings{ESXiPassword: console.Secret{Text: "wrong"}}}
	first := passwords(t, s, "a", "b")
	s.forgetESXi("a") // only host a has refused it
	if got := append(first, passwords(t, s, "a", "b")...); !slices.Equal(got, []string{"wrong", "wrong", "right", "wrong"}) {
		t.Errorf("refused by one host: %q", got)
	}

	file := filepath.Join(t.TempDir(), "passwords")
	if err := os.WriteFile(file, []byte("# lab\na pass word\n\nb 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	silent := &console.Env{Terminal: func() bool { return false }}
	s = &Session{Env: silent, Set: &console.Settings{ESXiPasswords: file, ESXiPassword: console.Secret{Text: "others"}}}
	if got := passwords(t, s, "a", "b", "c"); !slices.Equal(got, []string{"pass word", "2", "others"}) {
		t.Errorf("from a file: %q", got)
	}
	if err := os.WriteFile(file, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = &Session{Env: silent, Set: &console.Settings{ESXiPasswords: file, ESXiPassword: console.Secret{Text: "others"}}}
	for _, host := range []string{"a", "a", "b"} { // the error is that of every host: another source's password would lock accounts
		if p, err := s.esxiPassword(t.Context(), host); p != "" || console.ExitCode(err) != console.ExitUsage {
			t.Errorf("a line without a password: host %s gets %q, %v", host, p, err)
		}
	}
}

// TestARefusedSecretIsAskedAgain types a wrong sudo password, which must not be stored.
func TestARefusedSecretIsAskedAgain(t *testing.T) {
	var asked []string
	s := &Session{Env: person(&asked, false, "typo", "right"), Set: &console.Settings{}}
	var got []string
	for range 2 {
		p, err := s.secret(t.Context(), &s.Set.SudoPassword, "sudo password")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
		s.forget(&s.Set.SudoPassword, ssh.Target{Name: "guest vm-01"}, "typo")
	}
	if !slices.Equal(got, []string{"typo", "right"}) || s.Set.SudoPassword.Text != "right" {
		t.Errorf("%q, then %q", got, s.Set.SudoPassword.Text)
	}
}

// TestTheScreenIsAskedForSecrets runs the wizard's screen on the terminal: no prompt may appear behind the screen.
func TestTheScreenIsAskedForSecrets(t *testing.T) {
	s := &Session{Env: &console.Env{Terminal: func() bool { return true }}, Set: &console.Settings{}}
	s.Screen.Store(true)
	if p, err := s.secret(t.Context(), &s.Set.SudoPassword, "sudo password"); p != "" || err != nil {
		t.Errorf("a screen that asks nobody: %q, %v", p, err)
	}
	var asked []live.Question
	answers := []live.Answer{{Text: "typo"}, {Text: "right"}, {Text: "esxi"}, {Yes: true}, {}, {Interrupted: true}}
	s.Asks(func(_ context.Context, q live.Question) live.Answer {
		asked = append(asked, q)
		a := answers[0]
		answers = answers[1:]
		return a
	})
	sudo := func() (string, error) { return s.secret(t.Context(), &s.Set.SudoPassword, "sudo password") }
	if p, err := sudo(); p != "typo" || err != nil {
		t.Errorf("%q, %v", p, err)
	}
	s.forget(&s.Set.SudoPassword, ssh.Target{Name: "guest vm-01"}, "typo")
	if p, err := sudo(); p != "right" || err != nil {
		t.Errorf("%q, %v", p, err)
	}
	if got := passwords(t, s, "a", "b"); !slices.Equal(got, []string{"esxi", "esxi"}) {
		t.Errorf("the same for the others: %q", got)
	}
	for range 2 { // a host without a password is asked for once
		if p, err := s.secret(t.Context(), &s.Set.GuestPassword, "log-in password"); p != "" || err != nil {
			t.Errorf("%q, %v", p, err)
		}
	}
	s.AskAgain()
	if _, err := s.secret(t.Context(), &s.Set.GuestPassword, "log-in password"); backends.KindOf(err) != backends.KindInterrupted {
		t.Errorf("Ctrl-C: %v", err)
	}
	var words []string
	for _, q := range asked {
		words = append(words, q.Secret+q.Yes)
	}
	if want := []string{"sudo password", "sudo password (guest vm-01 refused it; once more)", "password of the ESXi host a",
		"Use this password for the other ESXi hosts too", "log-in password", "log-in password"}; !slices.Equal(words, want) {
		t.Errorf("asked %q, want %q", words, want)
	}
}

// TestSlowTypingCostsNoTimeout has a person take ten minutes to type the sudo password of a guest whose facts have a timeout of 40
// s.
func TestSlowTypingCostsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Session{Set: &console.Settings{}, Env: &console.Env{
			Terminal: func() bool { return true },
			Secret:   func(string) (string, error) { time.Sleep(10 * time.Minute); return "x", nil },
		}}
		tooSlow := errors.New("too slow")
		ctx, cancel := s.within(t.Context(), 40*time.Second, tooSlow)
		defer cancel()
		if _, err := s.secret(t.Context(), &s.Set.SudoPassword, "sudo password"); err != nil || ctx.Err() != nil {
			t.Errorf("%v, %v", err, context.Cause(ctx))
		}
		time.Sleep(41 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), tooSlow) {
			t.Errorf("the limit did not run on: %v", context.Cause(ctx))
		}
	})
}
