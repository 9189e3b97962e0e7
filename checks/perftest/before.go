package perftest

import (
	"context"
	"fmt"
	"regexp"
)

// silence is how many seconds to wait for any reply from the server's TCP port.
const silence = 8

// silent reports whether the server's guest drops packets to the control connection, which perftest itself notices only after
// minutes. A port without a listener refuses immediately, so the server must not be running yet: it would take the first
// connection for its client. For the same reason a port on which another server listens is not tested. Guests without bash cannot
// be tested.
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

// unheard is the result of a test that is skipped because the server's port does not answer.
func (r *Runner) unheard(p Pair, test string, port int) Measurement {
	m := r.blank(p, test)
	m.Verdict = VerdictFail
	m.Error = fmt.Sprintf("TCP port %d of %s (%s) does not answer %s: a firewall or a network device drops the packets", port, p.Server.VM, p.Server.IP, p.Client.VM)
	m.Hint = remedies["connect_failed"]
	return m
}

// Differing says that the two ends have different versions of perftest; "" if they do not, or if they are unknown. Different
// releases may work together; some do not, and hang or fail.
func (p Pair) Differing() string {
	if p.Client.Version == "" || p.Server.Version == "" || p.Client.Version == p.Server.Version {
		return ""
	}
	return fmt.Sprintf("perftest has version %s on %s and %s on %s", p.Client.Version, p.Client.VM, p.Server.Version, p.Server.VM)
}
