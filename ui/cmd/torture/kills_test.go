//go:build torture

package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/ui/cmd/torture/witness"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// systems are the systems of the guests.
var systems = []string{"ubuntu-22.04", "debian-12", "rhel-9", "rocky-9"}

// A cell is a mode on guests of one system, with the number of kills and their results.
type cell struct {
	mode
	system string

	kills, inside, between, late            int // late: the run had already ended
	backs, backsExact, resumes, resumeExact int
}

// A victim is a lab on which runs are killed, with its states before and after an undisturbed run.
type victim struct {
	*site
	start, end witness.Dump
	took       time.Duration // duration of an undisturbed run
}

// lookAt dumps the site with the witness.
func (s *site) lookAt() witness.Dump {
	s.t.Helper()
	w := witness.Site{URL: s.env["GOVC_URL"], User: s.env["GOVC_USERNAME"], Password: s.env["GOVC_PASSWORD"],
		CACerts: s.env["GOVC_TLS_CA_CERTS"],
		Key:     s.env["RDMA_SETUP_SSH_KEY"], SudoPassword: s.env["RDMA_SETUP_SUDO_PASSWORD"]}
	for _, v := range s.vms {
		w.Guests = append(w.Guests, witness.Guest{VM: path.Base(v.Name), Address: v.Guest.Address, Port: v.Guest.Port, User: v.Guest.User})
	}
	s.quiet()
	d, err := witness.Inspect(context.Background(), w)
	if err != nil {
		s.t.Fatalf("the witness: %v", err)
	}
	return d
}

// quiet waits until no command runs in the lab and nothing boots: commands continue after the client that started them has ended.
func (s *site) quiet() {
	s.t.Helper()
	s.until("no command runs any more", func() bool { return len(s.lab.World().Running()) == 0 })
	s.waitUntilIdle()
}

// stay reports whether a rollback leaves a key of a dump in place, as the plan says.
func (s *site) stay(key string) bool {
	return s.mode.stays != nil && strings.Contains(key, " vib ") && (strings.Contains(key, "mft") || strings.Contains(key, "nmst"))
}

// once reports whether a key differs between two runs with the same result: files in /run, which remain until the next boot, have
// different names in each run. It is not used when a rollback is checked.
func once(key string) bool { return strings.Contains(key, " /run/rdma-setup") }

// undisturbedVictim performs one run and its rollback, and checks that the rollback restores the start if nothing is killed.
func undisturbedVictim(t *testing.T, m mode) *victim {
	t.Helper()
	v := &victim{site: serve(t, m)}
	if m.name == "gpudirect" && !slices.Contains([]string{"ubuntu-22.04", "debian-12"}, m.systems[0]) {
		v.answers = v.rewrite(v.answers,
			func(a *answers.Answers) { a.GPUDirect.Driver = []string{"kmod-nvidia-open-dkms", "nvidia-driver-cuda"} })
	}
	if m.name == "gpudirect" { // also run with a lock that other operators see
		v.answers = v.rewrite(v.answers, func(a *answers.Answers) { a.Run.Lock = answers.LockShared })
	}
	v.start = v.lookAt()
	got := v.child("", v.apply()...)
	if got.code != 0 {
		t.Fatalf("undisturbed: exit %d\n%s", got.code, got)
	}
	v.took = got.took
	v.end = v.lookAt()
	if got := v.back(); got.code != 0 {
		t.Fatalf("undisturbed rollback: exit %d\n%s", got.code, got)
	}
	if diff := witness.Diff(v.start, v.lookAt(), v.stay); len(diff) > 0 {
		t.Errorf("undisturbed rollback differs:\n%s", short(diff))
	}
	v.forget()
	return v
}

// short returns the beginning of a list of differences. Guests are last, because a guest that is off differs in everything.
func short(diff []string) string {
	slices.SortStableFunc(diff, func(a, b string) int {
		return strings.Compare(strings.SplitN(a, " ", 3)[1], strings.SplitN(b, " ", 3)[1]) * -1
	})
	text := strings.Join(diff[:min(len(diff), 15)], "\n")
	if n := len(diff) - 15; n > 0 {
		text += fmt.Sprintf("\n... and %d more", n)
	}
	return text
}

// kill kills one run at a random time, then resumes it or rolls it back, and checks the resulting state. It returns the problem, ""
// if there is none.
func (v *victim) kill(c *cell, seed uint64, resume bool) (wrong string) {
	v.t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	at := time.Duration(random.Float64() * float64(v.took))
	run := v.site.start("", v.apply()...)
	time.Sleep(at) // the time of the kill is what the test varies
	var inside []string
	for _, e := range v.lab.World().Running() {
		inside = append(inside, e.VM+e.Host+": "+e.Detail)
	}
	_ = run.cmd.Process.Kill()
	got := run.end()
	c.kills++
	where := "between commands"
	switch {
	case got.code != -1:
		c.late++
		where = "after its end"
	case len(inside) > 0:
		c.inside++
		where = "inside " + strings.Join(inside, ", ")
	default:
		c.between++
	}
	what := fmt.Sprintf("RDMA_SETUP_TORTURE_SEED=%d %s %s, killed after %s of %s %s", seed, c.name, c.system, got.took.Round(time.Millisecond),
		v.took.Round(time.Millisecond), where)
	id, status := v.run()
	if resume {
		c.resumes++
		if got := v.finish(); got.code != 0 {
			return fmt.Sprintf("%s: resume: exit %d\n%s", what, got.code, got)
		}
		if diff := witness.Diff(v.end, v.lookAt(), once); len(diff) > 0 {
			return fmt.Sprintf("%s: the resume differs from the undisturbed end:\n%s", what, short(diff))
		}
		c.resumeExact++
		what += ", resumed"
		id, status = v.run()
	}
	c.backs++
	what += fmt.Sprintf(", run %q %s", id, status)
	var back said
	stay := v.stay
	if id == "" || status == "not begun" {
		// There is nothing to roll back. A shared lock that was just acquired stays until its lease ends or the next run acquires
		// it.
		stay = func(key string) bool {
			return v.stay(key) || strings.HasPrefix(key, "attribute rdma-setup.lock.") || strings.Contains(key, " customValue ")
		}
		v.child("", "plan", "-f", v.answers) // the next reader removes the scratch directory of one that was killed
	} else {
		if back = v.back(); back.code != 0 {
			return fmt.Sprintf("%s: rollback: exit %d\n%s", what, back.code, back)
		}
	}
	if diff := witness.Diff(v.start, v.lookAt(), stay); len(diff) > 0 {
		return fmt.Sprintf("%s: the rollback differs from the start:\n%s\n%s\n%s", what, short(diff), tail(got.out), back)
	}
	c.backsExact++
	v.forget()
	return ""
}

// number reads a number from the environment.
func number(t *testing.T, key string, def uint64) uint64 {
	t.Helper()
	text := os.Getenv(key)
	if text == "" {
		return def
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", key, text, err)
	}
	return n
}

// killRandomly kills runs of every mode on every system, the given number in total, and prints the table.
func killRandomly(t *testing.T, kills int, modes []mode, systems []string) {
	seed := number(t, "RDMA_SETUP_TORTURE_SEED", uint64(time.Now().UnixNano())%1e9)
	scale, err := strconv.ParseFloat(getenv("RDMA_SETUP_TORTURE_SCALE", "0.1"), 64)
	if err != nil {
		t.Fatal(err)
	}
	kills = int(number(t, "RDMA_SETUP_TORTURE_KILLS", uint64(kills)))
	t.Logf("RDMA_SETUP_TORTURE_SEED=%d RDMA_SETUP_TORTURE_KILLS=%d RDMA_SETUP_TORTURE_SCALE=%g", seed, kills, scale)
	var cells []*cell
	for _, system := range systems {
		for _, m := range modes {
			if strings.HasPrefix(m.name, "pvrdma") && system == "debian-12" {
				continue // the kernel of the lab's Debian does not have vmw_pvrdma: the run is refused
			}
			m.systems, m.clock = []string{system}, timing.Clock{Real: true, Scale: scale}
			cells = append(cells, &cell{mode: m.small(), system: system})
		}
	}
	var mu sync.Mutex
	var failures []string
	t.Run("all", func(t *testing.T) {
		for i, c := range cells {
			n := kills / len(cells)
			if i < kills%len(cells) {
				n++
			}
			t.Run(c.name+"-"+c.system, func(t *testing.T) {
				t.Parallel()
				var v *victim
				for k := range n {
					if v == nil {
						v = undisturbedVictim(t, c.mode)
					}
					if wrong := v.kill(c, seed+uint64(i*1000+k), k%2 == 1); wrong != "" {
						t.Error(wrong)
						mu.Lock()
						failures = append(failures, wrong)
						mu.Unlock()
						v = nil // the remaining state would affect the next kill
					}
				}
			})
		}
	})
	report(t, cells, failures)
}

func getenv(key, def string) string {
	if text := os.Getenv(key); text != "" {
		return text
	}
	return def
}

// report prints the table of the kills and writes it to bin/torture.
func report(t *testing.T, cells []*cell, failures []string) {
	t.Helper()
	var b strings.Builder
	row := func(cells ...any) { fmt.Fprintf(&b, "%-10v %-14v %6v %7v %8v %5v %15v %13v\n", cells...) }
	row("mode", "system", "kills", "inside", "between", "late", "rollback exact", "resume exact")
	total := cell{mode: mode{name: "all"}}
	for _, c := range cells {
		row(c.name, c.system, c.kills, c.inside, c.between, c.late, fmt.Sprintf("%d of %d", c.backsExact, c.backs),
			fmt.Sprintf("%d of %d", c.resumeExact, c.resumes))
		total.kills, total.inside, total.between, total.late = total.kills+c.kills, total.inside+c.inside, total.between+c.between,
			total.late+c.late
		total.backs, total.backsExact, total.resumes, total.resumeExact = total.backs+c.backs, total.backsExact+c.backsExact,
			total.resumes+c.resumes, total.resumeExact+c.resumeExact
	}
	row(total.name, "", total.kills, total.inside, total.between, total.late, fmt.Sprintf("%d of %d", total.backsExact, total.backs),
		fmt.Sprintf("%d of %d", total.resumeExact, total.resumes))
	fmt.Fprintf(&b, "kills inside commands: %d\n", total.inside)
	t.Log("\n" + b.String())
	dir := filepath.Join("..", "..", "..", "bin", "torture")
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kills.txt"), []byte(b.String()+"\n"+strings.Join(failures, "\n\n")+"\n"), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestTortureKills kills runs with kill -9 at random instants, inside remote commands and between them, while commands
// take as long as real ones under a scaled clock. Judge is the witness, which shares no code with the product.
//
// RDMA_SETUP_TORTURE_SEED repeats a series, RDMA_SETUP_TORTURE_KILLS sets the number of kills (default 300), and
// RDMA_SETUP_TORTURE_SCALE the clock's scale (default 0.1).
func TestTortureKills(t *testing.T) { killRandomly(t, 300, modes, systems) }
