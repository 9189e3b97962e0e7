//go:build torture

package torture

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// A cable is a TCP proxy in front of the vCenter of a lab that is cut when a given number of pieces of data has passed: before a
// request is sent, or before its answer arrives.
type cable struct {
	net.Listener
	to string

	mu      sync.Mutex
	passed  int           // pieces of data, in both directions
	cutAt   int           // before this piece; 0: never
	refuse  int           // connections to refuse before the cable is whole again
	rest    time.Duration // for which connections are refused, too
	when    time.Time
	refused int
	conns   map[net.Conn]bool
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
	s.t.Cleanup(func() { _ = l.Close(); c.reset(1, 0); c.passes() })
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
				piece := make([]byte, 64<<10)
				for n, err := 0, error(nil); err == nil; {
					if n, err = p[1].Read(piece); err == nil && c.passes() {
						_, err = p[0].Write(piece[:n])
					}
				}
				_, _ = p[0].Close(), p[1].Close()
			}()
		}
	}
}

// joins keeps a pair of connections, unless the cable is cut.
func (c *cable) joins(near, far net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.when.IsZero() && (c.refused < c.refuse || time.Since(c.when) < c.rest) {
		c.refused++
		_ = far.Close()
		return false
	}
	c.conns[near], c.conns[far] = true, true
	return true
}

// passes counts a piece of data, and cuts the cable before it if it is its turn.
func (c *cable) passes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passed++; c.cutAt == 0 || c.passed != c.cutAt {
		return true
	}
	c.when = time.Now()
	for conn := range c.conns {
		_ = conn.Close()
	}
	clear(c.conns)
	return false
}

// reset makes the cable whole until a number of pieces has passed, 0: for ever. It returns how many have passed since the last
// reset, and when the cable was cut.
func (c *cable) reset(cutAt, refuse int) (passed int, when time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed, when = c.passed, c.when
	c.passed, c.cutAt, c.refuse, c.refused, c.when = 0, cutAt, refuse, 0, time.Time{}
	return passed, when
}

// silence is the longest time in which a run says nothing, with some room for a loaded machine.
const silence = 11 * time.Second

// cutAt cuts the connection to vCenter before a piece of data of a run, shortly or for good, and checks that the run is never silent
// and that a resume or a rollback makes everything exact. It returns a row of the table.
func (s *site) cutAt(cable *cable, c course, piece int, short, resume bool) string {
	s.t.Helper()
	limit, refuse := 4*time.Second+3*cable.rest/2, 2
	if !short {
		limit, refuse = 2*time.Second, math.MaxInt
	}
	cable.reset(piece, refuse)
	got := s.start("calls:"+limit.String(), s.apply()...).end()
	_, when := cable.reset(0, 0)
	took := time.Since(when)
	s.waitUntilIdle()
	row := fmt.Sprintf("%5d  short %-5t  exit %3d", piece, short, got.code)
	if when.IsZero() {
		if row += "  had ended before"; got.code != 0 {
			s.t.Errorf("%s: nothing was cut\n%s", row, got)
		}
	} else {
		row += fmt.Sprintf(" after %4.1f s  %s", took.Seconds(), s.heard(got, when))
	}
	id, status := s.run()
	begun := id != "" && status != "not begun"
	if short && got.code != 0 && begun ||
		!short && !when.IsZero() && got.code == 0 && !strings.Contains(got.out+got.errs, "cannot be reached") {
		s.t.Errorf("%s: a short cut fails nothing, a long one is told\n%s", row, got)
	}
	end, want := s.back, c.start
	if resume {
		end, want = s.finish, c.end
	}
	if !begun {
		row += "; had not begun"
		want = c.start
	} else if after := end(); after.code != 0 {
		s.t.Errorf("%s; afterwards (resume %t) exit %d\n%s\n%s", row, resume, after.code, got, after)
	}
	if facts := s.facts(); !s.alike(facts, want) {
		s.t.Errorf("%s; afterwards (resume %t) not exact", row, resume)
		s.same("after the cut", want)
	} else {
		row += map[bool]string{true: "; resumed, exact", false: "; rolled back, exact"}[resume]
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

// cuts cuts the connection at n pieces of data of a run, for a short time and for good.
func cuts(t *testing.T, n int) {
	rest, err := time.ParseDuration(getenv("RDMA_SETUP_TORTURE_CUT", "0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modes[:3] {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, m)
			cable := s.cabled()
			cable.rest = rest
			where := map[string]string{}
			s.lab.World().View(func(st *world.State) {
				for _, v := range st.VMs {
					where[v.Name] = v.Host
				}
			})
			c := s.undisturbed()
			cable.reset(0, 0)
			if got := s.here(0, s.apply()...); got.code != 0 {
				t.Fatalf("exit %d\n%s", got.code, got)
			}
			pieces, _ := cable.reset(0, 0)
			if got := s.back(); got.code != 0 {
				t.Fatalf("exit %d\n%s", got.code, got)
			}
			s.forget()
			var rows []string
			for i := range n {
				_ = s.lab.World().Update(func(st *world.State) ([]world.Event, error) { // DRS may leave two where a card is for one
					var moved []world.Event // without them vCenter shows where the VMs were
					for _, v := range st.VMs {
						moved = append(moved, world.Event{What: world.HostVMs, Host: v.Host})
						v.Host = where[v.Name]
						moved = append(moved, world.Event{What: world.VMPower, VM: v.Name, Host: v.Host, Detail: "moved"},
							world.Event{What: world.HostVMs, Host: v.Host})
					}
					return moved, nil
				})
				rows = append(rows, s.cutAt(cable, c, pieces*(2*i+1)/(2*n), i%2 == 0, i/2%2 == 0))
			}
			t.Logf("%s, a run has %d pieces of data:\n%s", m.name, pieces, strings.Join(rows, "\n"))
		})
	}
}

// TestE2ECuts is a sample of TestTortureCuts.
func TestE2ECuts(t *testing.T) { cuts(t, 4) }

// TestTortureCuts cuts the connection of every mode all over a run. RDMA_SETUP_TORTURE_CUT is for how long, for example 60s; without it
// short cuts end when two connections were refused.
func TestTortureCuts(t *testing.T) { cuts(t, 40) }
