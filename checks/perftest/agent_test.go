package perftest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rdma-setup/rdma-setup/assets"
)

// TestMPIAgentAsksForDaemons runs the agent that is installed in guests; the scripts are sent without comments.
func TestMPIAgentAsksForDaemons(t *testing.T) {
	dir, bin := filepath.Join(t.TempDir(), "mpi"), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "mpirun"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	prepare := exec.CommandContext(t.Context(), "sh", "-c", assets.Script("mpi-prepare.sh"), "sh", dir, "")
	prepare.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := prepare.CombinedOutput(); err != nil || string(out) != "mpi "+bin+"\n" {
		t.Fatalf("%v: %s", err, out)
	}
	agent, err := os.ReadFile(filepath.Join(dir, "agent"))
	if err != nil || !bytes.HasPrefix(agent, []byte("#!/bin/sh\n")) { // a shell would run it without this line, execv does not
		t.Errorf("%v: %s", err, agent)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "agent"), "192.168.50.12", "orted", "-mca",
		`ess "env"`).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asks"))
	if want := "@launch 192.168.50.12 orted -mca ess \"env\"\n"; err != nil || string(asked) != want {
		t.Errorf("%v: asked %q, want %q", err, asked, want)
	}
}
