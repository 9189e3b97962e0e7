//go:build e2e

package form_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// files starts a lab whose guests can install driver and perftest only from files, with answers that name neither.
func files(t *testing.T, bin string) (env []string, answers string) {
	t.Helper()
	return served(t, bin, "gpudirect", func(text string) string {
		return regexp.MustCompile(`(?m)^  (driver|perftest):.*\n`).ReplaceAllString(text, "")
	}, "--scenario", "gpudirect-source", "--reboot-time", "1500ms")
}

// GPUDirect by keyboard: invalid input, a refusal, back with the input kept, another screen size during the run, a stop in a wave
// of reboots, resume to the end, and rollback.
func TestE2EWizardGPUDirect(t *testing.T) {
	bin := build(t)
	env, file := files(t, bin)
	s := start(t, bin, env, "-f", file)
	for _, text := range []string{"vCenter address", "Which hosts should be set up", "How should the guests", "Which pNIC of each host"} {
		s.shows(text)
		s.press(strings.Repeat("\r", fieldsOf[text]))
	}
	s.shows("MMIO window")
	s.press("\t\x15100\r") // Ctrl-U clears the field
	s.shows("neither kb, minimal, guide nor a power of two")
	s.press("\x15kb\r\r\r\r\r")
	s.shows("Which VMs get an RDMA")
	s.press("\r")
	s.shows("has no NVIDIA driver, and the answers name none")
	s.press("\x1b")
	s.shows("Which VMs get an RDMA")
	s.press("\x1b")
	s.shows("MMIO window")
	s.press("\t\t\t/mnt/share/driver.run\r\r\r")
	s.shows("is not a path of NVIDIA's installer")
	s.press("\x15/mnt/share/NVIDIA-Linux-x86_64-570.133.20.run\t/mnt/share/perftest-24.10.0-0.65.tar.gz\r\r")
	s.shows("Which VMs get an RDMA")
	s.press("\x1b")
	s.shows("570.133.20.run") // the input is kept
	s.press("\r\r\r\r\r\r")
	s.shows("Which VMs get an RDMA")
	s.press("\r")
	s.shows("Nothing prevents the setup")
	s.press("\r")
	s.shows("Scroll to the end (Enter)")
	s.press(strings.Repeat("\r", 50))
	s.shows("the plan was not accepted")
	s.press("yes\r")
	s.shows("reboot, wait")
	if err := pty.Setsize(s.tty, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	s.press("\x03")
	s.shows("Next steps", "rdma-setup resume")
	s.press("\r")
	if code := s.exit(); code != 130 {
		t.Errorf("a stopped run: exit code %d", code)
	}
	s.restored()
	for _, step := range []string{"resume", "rollback"} {
		again := start(t, bin, append(env, "XDG_STATE_HOME="+s.dir), step, "--yes")
		if code := again.exit(); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", step, code, again.text())
		}
		if step == "resume" {
			s.complete()
		}
	}
	plan := exec.Command(bin, "plan", "-f", filepath.Join(s.dir, "rdma-setup-answers.yaml"), "-o", "json")
	plan.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "XDG_STATE_HOME=" + s.dir}, env...)
	out, err := plan.Output()
	if err != nil || !strings.Contains(string(out), `"guest/vm-01/build/nvidia"`) ||
		!strings.Contains(string(out), `"vm/vm-02/device/0000:3c:00.0"`) {
		t.Errorf("after the rollback: %v\n%s", err, out)
	}
}
