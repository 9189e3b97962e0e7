//go:build e2e

package realtest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"
)

// A site is a simulated vCenter, set up for PVRDMA, whose VMs have real guests.
type site struct {
	outer  *testing.T // of the complete suite
	t      *testing.T // of the scenario
	bin    string
	dir    string // of the lab
	state  string
	env    []string
	guests []*machine
	late   bool // a guest's clock is wrong on purpose, which no change corrects
}

// lab starts one of the program's own labs.
func lab(t *testing.T, flags ...string) *site {
	t.Helper()
	bin, err := filepath.Abs("../../../bin/rdma-setup")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{outer: t, t: t, bin: bin, dir: filepath.Join(t.TempDir(), "lab"), state: t.TempDir()}
	cmd := exec.Command(bin, append([]string{"lab", "--dir", s.dir}, flags...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("make builds the binary first: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the lab is not ready: %s", log.String())
	}
	s.env = append(os.Environ(), "XDG_STATE_HOME="+s.state, "XDG_CONFIG_HOME="+s.state, "HOME="+s.state,
		"RDMA_SETUP_GUEST_TIMEOUT=3m")
	for line := range strings.Lines(string(s.read("env"))) {
		s.env = append(s.env, strings.TrimSpace(line))
	}
	return s
}

// serve starts a lab of n VMs and boots guests whose RDMA adapters have the VMs' MACs; second are MACs of further NICs.
func serve(t *testing.T, n int, pvrdma bool, second ...string) *site {
	t.Helper()
	s := lab(t, "--hosts", strconv.Itoa(n), "--vms", strconv.Itoa(n), "--scenario", "done")
	s.boot(n, "pvrdma", pvrdma, second...)
	return s
}

// macs returns the MACs of the adapters of a type, by VM.
func (s *site) macs(n int, adapter string) [][]string {
	s.t.Helper()
	var found struct {
		VMs []struct{ Adapters []struct{ MAC, Type string } }
	}
	listed, _ := s.must(0, "discover", "-o", "json")
	if err := json.Unmarshal([]byte(listed), &found); err != nil || len(found.VMs) != n {
		s.t.Fatalf("%v in %s", err, listed)
	}
	macs := make([][]string, n)
	for i, vm := range found.VMs {
		for _, a := range vm.Adapters {
			if a.Type == adapter {
				macs[i] = append(macs[i], a.MAC)
			}
		}
	}
	return macs
}

// boot starts guests for the VMs of a lab whose RDMA adapters have a type.
func (s *site) boot(n int, adapter string, pvrdma bool, second ...string) {
	t := s.t
	t.Helper()
	var macs []string
	for _, m := range s.macs(n, adapter) {
		macs = append(macs, m[0])
	}
	s.guests = bootAll(t, readKey(t, s.read("id_ed25519")), macs, second, pvrdma)
	s.meet()
}

// meet adds the guests to the known hosts of the lab's operator.
func (s *site) meet() {
	s.env = append(s.env, "RDMA_SETUP_GUEST_TIMEOUT=6m") // the processor is emulated, and the machine may be busy
	known := s.read("known_hosts")
	s.write("known_hosts.lab", string(known))
	for _, m := range s.guests {
		known = fmt.Appendln(known, m.known(m.host))
	}
	s.write("known_hosts", string(known))
}

// known returns the line of known_hosts for a machine with a key.
func (m *machine) known(k key) string {
	return knownhosts.Line([]string{fmt.Sprintf("127.0.0.1:%d", m.port)}, k.signer.PublicKey())
}

func (s *site) read(name string) []byte {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *site) write(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// with runs do with a variable of the environment set.
func (s *site) with(name, value string, do func()) {
	old := s.env
	s.env = append(old[:len(old):len(old)], name+"="+value)
	defer func() { s.env = old }()
	do()
}

var labGuest = regexp.MustCompile(`guest: \{address: 127\.0\.0\.1, port: \d+, user: \w+\}`)

const unmeasured = "\nmeasure: {bandwidth: false, latency: false}\n"

// answers writes answers that refer to the real guests and measure nothing; the users are those of guest-1 and guest-2.
func (s *site) answers(users ...string) string {
	s.t.Helper()
	return s.answersOf("pvrdma", users...)
}

// answersOf writes answers of a mode from the lab's files.
func (s *site) answersOf(mode string, users ...string) string {
	s.t.Helper()
	i := 0
	text := labGuest.ReplaceAllStringFunc(string(s.read("answers-"+mode+".yaml")), func(string) string {
		user := "ubuntu"
		if i < len(users) {
			user = users[i]
		}
		i++
		return fmt.Sprintf("guest: {address: 127.0.0.1, port: %d, user: %s}", s.guests[i-1].port, user)
	})
	if i != len(s.guests) {
		s.t.Fatalf("%d guests in\n%s", i, text)
	}
	return s.write("answers-"+strings.Join(users, "-")+".yaml", strings.TrimSpace(text)+unmeasured)
}

// measure writes a copy of answers that differs only in its section about measurements.
func (s *site) measure(answers, name, section string) string {
	s.t.Helper()
	text := string(s.read(filepath.Base(answers)))
	if !strings.Contains(text, unmeasured) {
		s.t.Fatalf("%s measures already", answers)
	}
	return s.write(name, strings.Replace(text, unmeasured, section, 1))
}

// run runs the program, for 25 minutes at most.
func (s *site) run(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 25*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.bin, args...)
	cmd.Env = s.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	started := time.Now()
	err := cmd.Run()
	if ctx.Err() != nil {
		s.t.Fatalf("rdma-setup %s has not ended:\n%s\n%s", strings.Join(args, " "), lastPart(out.String(), 60), lastPart(errs.String(), 40))
	}
	s.t.Logf("%s: %s", strings.Join(args[:min(len(args), 1)], " "), time.Since(started).Round(100*time.Millisecond))
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

// must runs the program, which must exit with the given code.
func (s *site) must(code int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	out, errs, got := s.run(args...)
	if got != code {
		s.t.Fatalf("rdma-setup %s: exit %d, want %d\n%s\n%s", strings.Join(args, " "), got, code, lastPart(out, 60), lastPart(errs, 40))
	}
	return out, errs
}
