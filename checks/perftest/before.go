package perftest

import (
	"context"
	"fmt"
	"regexp"
)

// silence is how long the server's TCP port may say nothing at all, neither yes nor no.
const silence = 8

// silent reports whether the server's guest drops what comes for the control connection, which perftest itself finds out after
// minutes. A port that nobody listens on answers at once, and so the server must not have been started: it takes the first
// connection for its client. For the same reason a port on which somebody else's server waits is left alone. Guests without bash
// tell nothing.
func (r *Runner) silent(ctx context.Context, p Pair, port int) bool {
	if p.Server.IP == "" {
		return false
	}
	if listening, err := r.Shell.Exec(ctx, p.Server.VM, Command{Line: "ss -ltn"}); err == nil && regexp.MustCompile(fmt.Sprintf(`:%d\s`, port)).MatchString(listening.Stdout) {
		return false
	}
	out, err := r.Shell.Exec(ctx, p.Client.VM, Command{
		Line: fmt.Sprintf("timeout %d bash -c %s", silence, quote(fmt.Sprintf(": </dev/tcp/%s/%d", p.Server.IP, port))),
	})
	return err == nil && out.Exit == timedOut
}

// unheard is the outcome of a test that is not tried, because the server's port is silent.
func (r *Runner) unheard(p Pair, test string, port int) Measurement {
	m := r.blank(p, test)
	m.Verdict = VerdictFail
	m.Error = fmt.Sprintf("TCP port %d of %s (%s) does not answer %s: a firewall or a network device drops the packets", port, p.Server.VM, p.Server.IP, p.Client.VM)
	m.Hint = remedies["connect_failed"]
	return m
}

// Differing says that the two ends have perftest of different versions; "" if they do not, or nothing is known. Releases may
// differ and understand each other; some do not, and hang or break off.
func (p Pair) Differing() string {
	if p.Client.Version == "" || p.Server.Version == "" || p.Client.Version == p.Server.Version {
		return ""
	}
	return fmt.Sprintf("perftest has version %s on %s and %s on %s", p.Client.Version, p.Client.VM, p.Server.Version, p.Server.VM)
}
