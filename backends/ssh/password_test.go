package ssh_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// TestPasswordIsAskedForAgain enters a wrong password twice: the third one logs in, and each wrong one is reported once.
func TestPasswordIsAskedForAgain(t *testing.T) {
	s := startServer(t, nil)
	c := trusting(t, s)
	answers := []string{"wrong", "worse", s.password}
	var refused []string
	c.Password = func(context.Context, ssh.Target) (string, error) {
		a := answers[0]
		answers = answers[1:]
		return a, nil
	}
	c.PasswordRefused = func(_ ssh.Target, p string) { refused = append(refused, p) }
	conn, err := newPool(t, c).Dial(t.Context(), s.target("vm-01"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if !slices.Equal(refused, []string{"wrong", "worse"}) {
		t.Errorf("refused: %q", refused)
	}
}

// TestAnswerAfterTheServerHungUp answers when sshd has ended the connection (sshd_config(5), LoginGraceTime): the login starts
// again with that password, and no password counts as refused.
func TestAnswerAfterTheServerHungUp(t *testing.T) {
	s := startServer(t, nil)
	c := trusting(t, s)
	c.DialTimeout = 300 * time.Millisecond
	var once sync.Once
	c.Password = func(context.Context, ssh.Target) (string, error) {
		once.Do(func() {
			s.drop()
			<-time.After(400 * time.Millisecond)
		})
		return s.password, nil
	}
	c.PasswordRefused = func(_ ssh.Target, p string) { t.Errorf("%q was taken for refused", p) }
	conn, err := newPool(t, c).Dial(t.Context(), s.target("esx-01"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// TestPasswordIsNotSentToAServerThatHangsUpOnIt uses a server that ends the connection when it receives the password: it is sent
// once, because the server may count attempts.
func TestPasswordIsNotSentToAServerThatHangsUpOnIt(t *testing.T) {
	s := startServer(t, nil)
	c := trusting(t, s)
	asked := 0
	c.Password = func(context.Context, ssh.Target) (string, error) {
		asked++
		s.drop()
		return s.password, nil
	}
	_, err := newPool(t, c).Dial(t.Context(), s.target("esx-01"))
	if backends.KindOf(err) != backends.KindUnreachable || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
