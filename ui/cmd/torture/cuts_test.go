package torture

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// A cable is a TCP proxy in front of the vCenter of a lab that can be cut.
type cable struct {
	net.Listener
	to string

	mu    sync.Mutex
	isCut bool
	conns map[net.Conn]bool
}

// cabled puts a cable between a site's commands and its vCenter.
func (s *site) cabled() *cable {
	s.t.Helper()
	u, err := url.Parse(s.env["GOVC_URL"])
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	c := &cable{Listener: l, to: u.Host, conns: map[net.Conn]bool{}}
	u.Host = l.Addr().String()
	s.env["GOVC_URL"] = u.String()
	s.answers = s.rewrite(s.answers, func(a *answers.Answers) { a.VCenter.URL = u.String() })
	go c.serve()
	s.t.Cleanup(func() { _ = l.Close(); c.cut(true) })
	return c
}

func (c *cable) serve() {
	for {
		near, err := c.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		if err != nil || !c.joins(near, far) {
			_ = near.Close()
			continue
		}
		for _, p := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				_, _ = io.Copy(p[0], p[1])
				_, _ = p[0].Close(), p[1].Close()
			}()
		}
	}
}

// joins keeps a pair of connections, unless the cable is cut.
func (c *cable) joins(near, far net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		_ = far.Close()
		return false
	}
	c.conns[near], c.conns[far] = true, true
	return true
}

// cut closes all connections, and until it is called with false every new one.
func (c *cable) cut(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = is
	for conn := range c.conns {
		_ = conn.Close()
	}
	clear(c.conns)
}

// silence is the longest time in which a run says nothing, with some room for a loaded machine.
const silence = 11 * time.Second

// cutAt cuts the connection to vCenter during a run, shortly or for good, and checks that the run is never silent and that a resume or
// a rollback makes everything exact. It returns a row of the table.
func (s *site) cutAt(cable *cable, c course, at time.Duration, short, resume bool) string {
	s.t.Helper()
	limit := 4 * time.Second
	if !short {
		limit = 2 * time.Second
	}
	run := s.start("calls:"+limit.String(), s.apply()...)
	time.Sleep(at)
	when := time.Now()
	cable.cut(true)
	if short {
		time.AfterFunc(limit/4, func() { cable.cut(false) })
	}
	got := run.end()
	took := time.Since(when)
	cable.cut(false)
	s.waitUntilIdle()
	row := fmt.Sprintf("%5d ms  short %-5t  exit %3d after %4.1f s  %s", at.Milliseconds(), short, got.code, took.Seconds(), s.heard(got, when))
	if !short && got.code == 0 && took > time.Second && !strings.Contains(got.out+got.errs, "cannot be reached") {
		s.t.Errorf("%s: nobody was told", row)
	}
	end, want := s.back, c.start
	if resume {
		end, want = s.finish, c.end
	}
	if id, status := s.run(); id == "" || status == "not begun" {
		row += "; had not begun"
		want = c.start
	} else if after := end(); after.code != 0 {
		s.t.Errorf("%s; afterwards (resume %t) exit %d\n%s\n%s", row, resume, after.code, got, after)
	}
	if facts := s.facts(); !s.alike(facts, want) {
		s.t.Errorf("%s; afterwards (resume %t) not exact", row, resume)
		s.same("after the cut", want)
	}
	if id, _ := s.run(); resume && id != "" {
		if back := s.back(); back.code != 0 {
			s.t.Fatalf("%s; rollback: exit %d\n%s", row, back.code, back)
		}
	}
	s.forget()
	return row
}

// heard checks that no two events of a run are too far apart, and returns the first words after the cut.
func (s *site) heard(got said, cut time.Time) string {
	s.t.Helper()
	first, last := "", time.Time{}
	for line := range strings.Lines(got.out) {
		var e engine.Event
		if json.Unmarshal([]byte(line), &e) != nil || e.Time.IsZero() {
			continue
		}
		if !last.IsZero() && e.Time.Sub(last) > silence {
			s.t.Errorf("silent for %s before %s", e.Time.Sub(last), line)
		}
		if last = e.Time; first == "" && e.Time.After(cut) && (e.Type == engine.EventWaiting || e.Type == engine.EventFailed) {
			first = e.Text + e.Err
		}
	}
	if first == "" {
		first = strings.TrimSpace(got.errs)
	}
	return fmt.Sprintf("%.110q", first)
}

// cuts cuts the connection at n instants of a run, for a short time and for good.
func cuts(t *testing.T, m mode, n int) {
	s := serve(t, m)
	cable := s.cabled()
	c := s.undisturbed()
	begun := time.Now()
	if got := s.here(0, s.apply()...); got.code != 0 {
		t.Fatalf("exit %d\n%s", got.code, got)
	}
	took := time.Since(begun)
	if got := s.back(); got.code != 0 {
		t.Fatalf("exit %d\n%s", got.code, got)
	}
	s.forget()
	var rows []string
	for i := range n {
		rows = append(rows, s.cutAt(cable, c, took*time.Duration(2*i+1)/time.Duration(2*n), i%2 == 0, i/2%2 == 0))
	}
	t.Logf("%s, a run takes %s:\n%s", filepath.Base(m.name), took.Round(time.Millisecond), strings.Join(rows, "\n"))
}

func TestConnectionIsCut(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	cuts(t, modes[1].small(), 4)
}
