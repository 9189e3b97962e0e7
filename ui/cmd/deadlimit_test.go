package cmd_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A silence is what a program spent on machines that take connections and say nothing.
type silence struct {
	t     *testing.T
	mu    sync.Mutex
	waits []silentWait
}

type silentWait struct {
	of        string
	from, end time.Time
}

// machine starts one, and returns its address.
func (s *silence) machine(name string) *net.TCPAddr {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			from := time.Now()
			go func() {
				for b := make([]byte, 512); err == nil; _, err = c.Read(b) {
				}
				_ = c.Close()
				s.mu.Lock()
				defer s.mu.Unlock()
				s.waits = append(s.waits, silentWait{name, from, time.Now()})
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr)
}

// oneAfterAnother returns the longest series of waits of which each began when the one before had ended: what the silence costs, in
// limits of one machine.
func (s *silence) oneAfterAnother() (series []string, machines int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.waits, func(a, b silentWait) int { return a.end.Compare(b.end) })
	of := map[string]bool{}
	var last time.Time
	for _, w := range s.waits {
		if of[w.of] = true; w.from.After(last) {
			series, last = append(series, w.of), w.end
		}
	}
	return series, len(of)
}

// hung returns the calls of a trace to a host, but for the questions whether it and vCenter answer.
func hung(t *testing.T, trace, host string) (methods []string) {
	t.Helper()
	text := testclass.Read(t, trace)
	call := regexp.MustCompile(`"method":"([^"]+)","target":"` + host + `[" ]`)
	for _, m := range call.FindAllStringSubmatch(string(text), -1) {
		if m[1] != "RetrieveHardwareUptime" && m[1] != "CurrentTime" {
			methods = append(methods, m[1])
		}
	}
	return methods
}

// TestDeadMachinesCostOneLimit: machines that take connections and say nothing, more than run.parallel, are waited for at the same time;
// the longest series of waits one after the other is one. Hosts that vCenter has lost, and one whose calls hang, are asked for once.
// Of a whole run, only one call to that host waits for its limit.
func TestDeadMachinesCostOneLimit(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	guests := func(s *silence, a *answers.Answers) {
		for i := range a.VMs[:8] {
			at := s.machine(a.VMs[i].Name)
			a.VMs[i].Guest.Address, a.VMs[i].Guest.Port = at.IP.String(), at.Port
		}
	}
	shells := func(s *silence, a *answers.Answers) {
		for _, h := range []string{"esx-02", "esx-03", "esx-04", "esx-05"} {
			a.ESXi.Addresses[h] = s.machine(h).String()
		}
	}
	for _, tt := range []struct {
		name, mode string
		silent     func(*silence, *answers.Answers)
		args       []string
		machines   int
		code       int
		says       string
		fault      string
	}{
		{"plan", "pvrdma", guests, []string{"--guest-timeout", "4s"}, 8, 4, "vm-08: the guest is running but cannot be read", ""},
		{"check", "pvrdma", guests, []string{"--guest-timeout", "4s"}, 8, 1, "", ""},
		{"apply", "pvrdma", guests, []string{"--yes", "--guest-timeout", "4s"}, 8, 4, "vm-08: the guest is running but cannot be read", ""},
		{"apply", "sriov", shells, []string{"--yes"}, 4, 4, "esx-05: no SSH login", ""},
		{"apply", "pvrdma", nil, []string{"--yes"}, 0, 5, "not reached: esx-02", "host=esx-02,do=hang"},
	} {
		t.Run(tt.name+" "+tt.mode, func(t *testing.T) {
			t.Parallel()
			o := lab.Options{Hosts: 5, VMs: 10, Scenario: map[string]string{"sriov": "sriov-half"}[tt.mode]}
			if tt.fault != "" {
				o.Faults = []string{tt.fault}
			}
			b := newBench(t, o)
			text := testclass.Read(t, filepath.Join(b.lab.Dir(), "answers-"+tt.mode+".yaml"))
			a, err := answers.Load(bytes.NewReader(text), "")
			testclass.OK(t, err)
			s := &silence{t: t}
			trace := filepath.Join(t.TempDir(), "trace")
			if tt.args = append(tt.args, "--trace", trace); tt.silent != nil {
				tt.silent(s, a)
			}
			a.Run.Parallel = 2
			var out bytes.Buffer
			file := filepath.Join(t.TempDir(), "answers.yaml")
			testclass.OK(t, errors.Join(answers.Save(&out, a), os.WriteFile(file, out.Bytes(), 0o600)))
			code, stdout, errs := b.run(append([]string{tt.name, "-f", file}, tt.args...)...)
			series, n := s.oneAfterAnother()
			if tt.silent == nil {
				series = hung(t, trace, "esx-02")
			}
			if len(series) != 1 || n != tt.machines || code != tt.code || !strings.Contains(stdout+errs, tt.says) {
				t.Errorf("exit %d; %d machines were waited for, one after the other %v\n%s\n%s", code, n, series, stdout, errs)
			}
		})
	}
}
