//go:build e2e

package form_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// restored checks that the terminal is in the state that a shell needs: like a new one, with echo and line editing on, the original
// screen, a cursor, and without mouse or paste reports.
func (s *terminal) restored() {
	s.t.Helper()
	master, fresh, err := pty.Open()
	if err != nil {
		s.t.Fatal(err)
	}
	defer master.Close()
	defer fresh.Close()
	want, err := term.GetState(int(fresh.Fd()))
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := term.GetState(int(s.tty.Fd()))
	if err != nil {
		s.t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		s.t.Errorf("the terminal's modes are %+v, want %+v", got, want)
	}
	s.mu.Lock()
	drawn := s.output.String()
	s.mu.Unlock()
	for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h", "\x1b[?2004h": "\x1b[?2004l",
		"\x1b[?1000h": "\x1b[?1000l"} {
		if strings.LastIndex(drawn, on) > strings.LastIndex(drawn, off) {
			s.t.Errorf("%q was sent and never taken back with %q", on, off)
		}
	}
}

// served starts a lab in a separate process, and returns its environment and a file with one of its answers, as modified by change.
func served(t *testing.T, bin, mode string, change func(text string) string, flags ...string) (env []string, answers string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lab")
	lab := exec.Command(bin, append([]string{"lab", "--hosts", "2", "--vms", "2", "--dir", dir}, flags...)...)
	out, err := lab.StdoutPipe()
	testclass.OK(t, err)
	testclass.OK(t, lab.Start())
	t.Cleanup(func() {
		_ = lab.Process.Signal(os.Interrupt)
		_ = lab.Wait()
	})
	if ready := make([]byte, 6); !strings.Contains(readWord(out, ready), "ready") {
		t.Fatal("the lab is not ready")
	}
	b := testclass.Read(t, filepath.Join(dir, "env"))
	text := testclass.Read(t, filepath.Join(dir, "answers-"+mode+".yaml"))
	answers = filepath.Join(t.TempDir(), "answers.yaml")
	testclass.Write(t, answers, change(string(text)))
	// The machine may run other tests: reading a guest can then exceed the timeout of 40 s, and a host that of 30 s.
	return append(strings.Fields(string(b)), "RDMA_SETUP_GUEST_TIMEOUT=2m", "RDMA_SETUP_HOST_TIMEOUT=4m"), answers
}

// lossless starts a lab with answers that require a reboot of every host.
func lossless(t *testing.T, bin string) (env []string, answers string) {
	t.Helper()
	return served(t, bin, "pvrdma", func(text string) string { return text + "qos: {lossless: pfc}\n" }, "--reboot-time", "1s")
}

func readWord(r io.Reader, into []byte) string {
	n, _ := io.ReadFull(r, into)
	return string(into[:n])
}
