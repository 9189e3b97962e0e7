package ssh_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// TestTraceShowsLogins has one line for each attempt to connect, with its outcome and without what was entered.
func TestTraceShowsLogins(t *testing.T) {
	s := startServer(t, nil)
	for name, c := range map[string]struct {
		change func(*ssh.Config)
		server func()
		want   []string
	}{
		"ok":             {want: []string{"ok"}},
		"wrong password": {change: func(c *ssh.Config) { c.Password = say("wrong-4711") }, want: []string{"refused: password"}},
		"nothing to try": {change: func(c *ssh.Config) { c.Password = nil }, want: []string{"refused: nothing to try"}},
		"unknown host":   {change: func(c *ssh.Config) { c.KnownHosts = nil }, want: []string{"the host key is not known: " + s.addr}},
		"hung up once": {server: func() { s.mu.Lock(); s.hangups = 1; s.mu.Unlock() },
			want: []string{"the server closed the connection", "ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := trusting(t, s)
			conf.Password = say(s.password)
			if c.change != nil {
				c.change(&conf)
			}
			if c.server != nil {
				c.server()
			}
			var calls []backends.Call
			conf.Trace = func(call backends.Call) { calls = append(calls, call) }
			if conn, err := newPool(t, conf).Dial(t.Context(), s.target("vm-01")); err == nil {
				conn.Close()
			}
			var got []string
			for _, call := range calls {
				got = append(got, call.Outcome)
				if call.Method != "ssh connect" || call.Target != "vm-01 ("+s.addr+")" || call.Took <= 0 {
					t.Errorf("%s  %s  %s", call.Method, call.Target, call.Took)
				}
				if text := fmt.Sprint(call); strings.Contains(text, "wrong-4711") || strings.Contains(text, s.password) {
					t.Errorf("the password is in the trace: %s", text)
				}
			}
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// say answers every question with a password.
func say(password string) func(context.Context, ssh.Target) (string, error) {
	return func(context.Context, ssh.Target) (string, error) { return password, nil }
}
