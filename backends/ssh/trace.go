package ssh

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// trace reports a finished command, with the length of its standard input but not its content.
func (c *Conn) trace(cmd Command, began time.Time, r Result, err error) {
	p := c.link.pool
	if p.config.Trace == nil {
		return
	}
	script := cmd.script()
	call := backends.Call{
		ID: fmt.Sprintf("ssh-%d", p.commands.Add(1)), Method: "ssh " + cmp.Or(cmd.What, program(script)), Target: c.target.String(), Started: began, Took: time.Since(began),
		Sent: int64(len(script) + len(cmd.Stdin)), Received: int64(len(r.Stdout) + len(r.Stderr)), Payload: Excerpt(script),
	}
	if cmd.Sudo {
		call.Payload = "as root: " + call.Payload
	}
	switch {
	case errors.Is(err, ErrTooSlow):
		call.Outcome = "too slow"
	case errors.Is(err, ErrConnectionLost):
		call.Outcome = "connection lost"
	case errors.Is(err, ErrTooMuch):
		call.Outcome = "too much output"
	case err != nil:
		call.Outcome = string(backends.KindOf(err))
	case r.Signal != "":
		call.Outcome = "signal " + r.Signal
	case r.ExitCode != 0:
		call.Outcome = fmt.Sprintf("exit %d", r.ExitCode)
	default:
		call.Outcome = "ok"
	}
	p.config.Trace(call)
}

// program returns the name of the first program in a script; "sh" if the script begins with a shell builtin or keyword.
func program(script string) string {
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		name := path.Base(words[0])
		if strings.IndexFunc(name, needsQuotes) >= 0 || slices.Contains(builtin, name) {
			return "sh"
		}
		return name
	}
	return "sh"
}

var builtin = []string{".", ":", "cd", "command", "echo", "eval", "exec", "export", "for", "if", "case", "printf", "read", "set", "test", "trap", "unset", "until", "while"}
