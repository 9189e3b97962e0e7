package cmd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/nic/mlx5"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// The race detector makes every program sleep for a second before it ends, for goroutines that are still running; the hundreds of
// commands that the tests run wait for their goroutines.
const prompt = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", prompt)
	testscript.Main(clean{m}, map[string]func(){
		"rdma-setup": func() { os.Exit(measured(cmd.Main)) },
		"rdma-setup-in-no-hurry": func() { // with no time limit, so that hosts are restored on a slow machine too
			e := console.OSEnv()
			e.PutBackLimit = time.Hour
			os.Exit(cmd.Run(context.Background(), e, os.Args[1:]))
		},
	})
}

// connectX knows the names of the drivers of the cards in the lab.
var connectX = mlx5.Family{}

// terminalReader lists goroutines of Bubble Tea that may outlive a program. One that has read a key after the program ended blocks
// forever because nobody receives the key (ultraviolet, TerminalReader.sendEvents), and another may still be blocked in its read.
var terminalReader = []goleak.Option{
	goleak.IgnoreAnyFunction("charm.land/bubbletea/v2.(*Program).readLoop"),
	goleak.IgnoreAnyFunction("github.com/charmbracelet/ultraviolet.(*TerminalReader).StreamEvents.func1"),
}

// peakVariable names a file to which the program writes its largest resident set, in KiB, when it ends.
const peakVariable = "RDMA_SETUP_TEST_PEAK"

// measured runs the program. The kernel counts the peak (VmHWM, proc(5)) per address space, so it covers the program alone;
// wait4(2) would include the parent from which it was forked.
func measured(run func() int) int {
	code := run()
	if file := os.Getenv(peakVariable); file != "" {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return 99
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if os.WriteFile(file, []byte(kib), 0o600) != nil {
			return 99
		}
	}
	return code
}

// clean runs the tests, and fails if a command has left a goroutine running.
type clean struct{ *testing.M }

func (m clean) Run() int {
	code := m.M.Run()
	if err := goleak.Find(terminalReader...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// TestScripts runs the commands as a script would, each against a lab of its own.
//
//	lab [--scenario S] [--hosts N] [--vms N] [--guest-files DIR] [--fault RULE]...   starts a lab in $LAB and sets its environment
//	exits N command...                                            runs a command that must exit with N
//	guest VM script                                               runs a script as root in a guest of the lab; its output is stdout
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "config"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("FAMILY", connectX.Name())
			e.Setenv("DRIVER", connectX.Driver())
			e.Setenv("GORACE", prompt)
			e.Setenv("GOGC", os.Getenv("GOGC"))
			e.Setenv("LAB", filepath.Join(e.WorkDir, "lab"))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "all" {
				return testclass.All || testclass.Race, nil // only make e2e-full runs scripts with the race detector
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"lab": startLab, "exits": exits, "guest": asRoot,
			"valid": valid},
	})
}

func startLab(ts *testscript.TestScript, neg bool, args []string) {
	o := lab.Options{Hosts: 2, VMs: 2, Dir: ts.Getenv("LAB"), RebootTime: 300 * time.Millisecond}
	for i := 0; i+1 < len(args); i += 2 {
		n, _ := strconv.Atoi(args[i+1])
		switch args[i] {
		case "--scenario":
			o.Scenario = args[i+1]
			o.Hosts, o.VMs = 0, 0
		case "--boot-time":
			d, err := time.ParseDuration(args[i+1])
			ts.Check(err)
			o.BootTime = d
		case "--hosts":
			o.Hosts = n
		case "--vms":
			o.VMs = n
		case "--reboot-time":
			d, err := time.ParseDuration(args[i+1])
			ts.Check(err)
			o.RebootTime = d
		case "--systems":
			o.Systems = strings.Split(args[i+1], ",")
		case "--guest-files":
			o.GuestFiles = ts.MkAbs(args[i+1])
		case "--fault":
			o.Faults = append(o.Faults, args[i+1])
		default:
			ts.Fatalf("lab: no flag %s", args[i])
		}
	}
	l, err := lab.Start(context.Background(), o)
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	labs.Store(ts.Getenv("LAB"), l)
	for _, kv := range l.Env() {
		key, value, _ := strings.Cut(kv, "=")
		ts.Setenv(key, value)
	}
}

// labs are the labs of the scripts, by directory.
var labs sync.Map

func asRoot(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: guest VM SCRIPT")
	}
	found, _ := labs.Load(ts.Getenv("LAB"))
	l := found.(*lab.Lab)
	var address, user string
	l.World().View(func(s *world.State) {
		for _, v := range s.VMs {
			if v.Name == args[0] {
				address, user = net.JoinHostPort(v.Guest.Address, strconv.Itoa(v.Guest.Port)), v.Guest.User
			}
		}
	})
	script := fmt.Sprintf("echo '%s' | sudo -S -p '' sh -c '%s'", ts.Getenv("RDMA_SETUP_SUDO_PASSWORD"), args[1])
	out, err := remote(l, address, user, script)
	fmt.Fprint(ts.Stdout(), out)
	switch {
	case err != nil && !neg:
		ts.Fatalf("%s: %v\n%s", args[0], err, out)
	case err == nil && neg:
		ts.Fatalf("%s: it succeeded", args[0])
	}
}

// remote runs a script in a guest.
func remote(l *lab.Lab, address, user, script string) (string, error) {
	key, err := os.ReadFile(filepath.Join(l.Dir(), "id_ed25519"))
	if err != nil {
		return "", err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return "", err
	}
	c, err := ssh.Dial("tcp", address, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err != nil {
		return "", err
	}
	defer c.Close()
	session, err := c.NewSession()
	if err != nil {
		return "", err
	}
	out, err := session.CombinedOutput(script)
	return string(out), err
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command [args]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}
