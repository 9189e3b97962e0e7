package perftest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
)

// A filtered port is reported before perftest waits for it: its connect() takes two minutes, three times.
func TestSilentPortIsNotTried(t *testing.T) {
	g := &guests{gbps: 100, one: 1, us: 2, silent: true}
	for _, m := range measure(t, g, 100_000) {
		if m.Verdict != perftest.VerdictFail || !strings.Contains(m.Error, "TCP port 18515 of vm-2 (10.0.0.2) does not answer vm-1") ||
			m.Hint == "" {
			t.Errorf("%s: %s %q %q", m.Test, m.Verdict, m.Error, m.Hint)
		}
	}
	if len(g.lines) != 0 {
		t.Errorf("clients were started: %q", g.lines)
	}
}

// Releases that refuse each other are not started: the pair is not measured, for one reason. Others are measured, and what fails then
// has its own cause, whatever the versions are (check_version_compatibility of perftest).
func TestReleasesThatRefuseEachOther(t *testing.T) {
	for _, c := range []struct{ client, server, fail, error, hint string }{
		{"5.60", "6.06", "", "not measured: perftest 5.60 on vm-1 and 6.06 on vm-2 refuse each other", "measure.perftest"},
		{"6.24", "5.6", "", "not measured: perftest 6.24 on vm-1 and 5.6 on vm-2 refuse each other", "measure.perftest"},
		{"6.06", "5.80", "", "", ""},
		{"6.29", "6.06", "", "", ""},
		{"5.6", "5.60", "", "", ""},
		{"", "5.60", "", "", ""},
		{"4.5+0.17", "5.60", "", "", ""},
		{"6.06", "5.80", "ib_send_bw", "Couldn't allocate MR", "memlock"},
	} {
		pairs, g := pairOf(100_000), &guests{gbps: 97, one: 1, us: 2, fail: c.fail}
		pairs[0].Client.Version, pairs[0].Server.Version = c.client, c.server
		r := perftest.Runner{Shell: g, Mode: "sriov", Bandwidth: true}
		all, err := r.Measure(t.Context(), pairs)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %d measurements", err, len(all))
		}
		m := all[0]
		refused := strings.HasPrefix(c.error, "not measured")
		if m.Error != c.error || !strings.Contains(m.Hint, c.hint) || (m.Verdict == perftest.VerdictUnknown) != refused ||
			refused && len(g.lines) != 0 {
			t.Errorf("%s and %s: %s %q, hint %q, commands %q", c.client, c.server, m.Verdict, m.Error, m.Hint, g.lines)
		}
	}
}

// TestSomebodyElsesServer checks that reading the port does not end a server that waits there: the server would take the read for
// its client.
func TestSomebodyElsesServer(t *testing.T) {
	for port, probed := range map[string]bool{"18515": false, "185150": true, "8515": true} {
		t.Run(port, func(t *testing.T) {
			g := &guests{gbps: 100, one: 1, us: 2, taken: port}
			r := perftest.Runner{Shell: g, Mode: "sriov", Bandwidth: true}
			if _, err := r.Measure(t.Context(), pairOf(100_000)); err != nil {
				t.Fatal(err)
			}
			if got := g.probed.Load(); got != probed {
				t.Errorf("port was asked: %t", got)
			}
		})
	}
}

// late is a guest whose server reports that it waits some time before it does.
type late struct {
	guests
	after   time.Duration // from the first attempt
	delay   time.Duration // until an attempt is refused
	first   time.Time
	refused int
}

func (l *late) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	if strings.Contains(c.Line, "ib_send_bw") && strings.HasSuffix(c.Line, "'10.0.0.2'") {
		if l.first.IsZero() {
			l.first = time.Now()
		}
		if time.Since(l.first) < l.after {
			l.refused++
			time.Sleep(l.delay)
			return perftest.Output{Exit: 1, Stderr: "Couldn't connect to 10.0.0.2:18515\n Unable to open file descriptor for socket connection"}, nil
		}
	}
	return l.guests.Exec(ctx, vm, c)
}

// A server may be slow to open its port on a busy machine; a port that nobody opens is reported after seconds.
func TestClientWaitsForTheServerToTakeItsPort(t *testing.T) {
	for _, tt := range []struct {
		after, delay time.Duration
		refused      int
		measured     bool
	}{
		{3 * time.Second, 0, 4, true},
		{time.Hour, 0, 5, false},
		{time.Hour, time.Minute, 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &late{guests: guests{gbps: 97, one: 1, us: 2}, after: tt.after, delay: tt.delay}
			r := perftest.Runner{Shell: l, Mode: "sriov", Bandwidth: true}
			all, err := r.Measure(t.Context(), pairOf(100_000))
			if err != nil || len(all) != 1 {
				t.Fatalf("%v, %d measurements", err, len(all))
			}
			if m := all[0]; (m.Error == "") != tt.measured || l.refused != tt.refused {
				t.Errorf("open after %s: refused %d times, %q", tt.after, l.refused, m.Error)
			}
		})
	}
}

// A server that ends before its client connects is not mistaken for a firewall.
func TestServerThatEndsIsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := perftest.Runner{Shell: &gone{late: late{guests: guests{gbps: 97, one: 1, us: 2}, after: time.Hour}}, Mode: "sriov", Bandwidth: true}
		all, err := r.Measure(t.Context(), pairOf(100_000))
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %d measurements", err, len(all))
		}
		if m := all[0]; !strings.Contains(m.Error, "server on vm-2: the connection was lost") || strings.Contains(m.Hint, "open TCP") {
			t.Errorf("%q, hint %q", m.Error, m.Hint)
		}
	})
}

// gone is a guest whose server reports that it waits, and ends a second later.
type gone struct{ late }

func (g *gone) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	if strings.Contains(c.Line, "ib_send_bw") && !strings.HasSuffix(c.Line, "'10.0.0.2'") {
		c.OnLine("* Waiting for client to connect... *")
		time.Sleep(time.Second)
		return perftest.Output{}, errors.New("the connection was lost")
	}
	return g.late.Exec(ctx, vm, c)
}

// deaf is a guest whose control port is used by another program: perftest reports that it waits, then that it cannot listen, and
// the client has reached the other program, which sends nothing or hangs up.
type deaf struct {
	guests
	hangsUp bool
}

func (d *deaf) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	switch {
	case !strings.Contains(c.Line, "ib_send_bw"):
		return d.guests.Exec(ctx, vm, c)
	case strings.HasSuffix(c.Line, "'10.0.0.2'") && d.hangsUp:
		return perftest.Output{Exit: 1, Stderr: " Unable to write to socket/rdma_cm\nFailed to exchange data between server and clients\n"}, nil
	case strings.HasSuffix(c.Line, "'10.0.0.2'"):
		<-ctx.Done()
		return perftest.Output{}, ctx.Err()
	}
	c.OnLine("* Waiting for client to connect... *")
	return perftest.Output{Exit: 1,
		Stderr: "Couldn't listen to port 18515\nUnable to open file descriptor for socket connection Unable to init the socket connection\n"}, nil
}

// TestPortOfAnother checks that a client does not wait for its limit of minutes if the server could not open its port, and that the
// error names the port, not the other program's answer to the client.
func TestPortOfAnother(t *testing.T) {
	for _, hangsUp := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			r := perftest.Runner{Shell: &deaf{hangsUp: hangsUp}, Mode: "sriov", Bandwidth: true}
			pairs := pairOf(100_000)
			pairs[0].Client.Version, pairs[0].Server.Version = "6.06", "5.80"
			all, err := r.Measure(t.Context(), pairs)
			if err != nil || len(all) != 1 {
				t.Fatalf("%v, %d measurements", err, len(all))
			}
			if m := all[0]; m.Verdict != perftest.VerdictFail || m.Error != "server on vm-2: TCP port 18515 is taken by another program there" ||
				!strings.Contains(m.Hint, "ss -ltnp") {
				t.Errorf("hangs up %t: %s %q, hint %q", hangsUp, m.Verdict, m.Error, m.Hint)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("told after %v", took)
			}
		})
	}
}

// refusing is a guest whose server reports why it refuses the client, which sees only the end of the connection.
type refusing struct{ guests }

func (r *refusing) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	switch {
	case !strings.Contains(c.Line, "ib_send_bw"):
		return r.guests.Exec(ctx, vm, c)
	case strings.HasSuffix(c.Line, "'10.0.0.2'"):
		return perftest.Output{Exit: 1, Stderr: " Unable to read from socket/rdma_cm\n Failed to exchange data between server and clients\n"}, nil
	}
	c.OnLine("* Waiting for client to connect... *")
	return perftest.Output{Exit: 1, Stderr: "Current implementation is not compatible with versions older than 5.70\n"}, nil
}

func TestReasonOfTheServerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := perftest.Runner{Shell: &refusing{}, Mode: "sriov", Bandwidth: true}
		all, err := r.Measure(t.Context(), pairOf(100_000))
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %d measurements", err, len(all))
		}
		if m := all[0]; m.Error != "server on vm-2: Current implementation is not compatible with versions older than 5.70" {
			t.Errorf("error %q", m.Error)
		}
	})
}
