package cmd_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// operators are two operators of one site with their own state directories. One has the VMs vm-01 and vm-02, the other vm-03 and
// vm-04; both use the same host ports.
func operators(t *testing.T) (files [2]string, envs [2]map[string]string) {
	b := newBench(t, lab.Options{Scenario: "done", Hosts: 2, VMs: 4, Commands: timing.Clock{Real: true, Scale: scale}})
	all := filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml")
	for i, part := range [][2]string{{"  - name: \"vm-03\"", "guest:\n"}, {"  - name: \"vm-01\"", "  - name: \"vm-03\""}} {
		files[i] = without(t, all, part[0], part[1])
		envs[i] = maps.Clone(b.env)
		envs[i]["HOME"], envs[i]["XDG_STATE_HOME"] = t.TempDir(), t.TempDir()
	}
	return files, envs
}

// without returns answers without the lines from one text to another.
func without(t *testing.T, file, from, to string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), from)
	_, after, _ := strings.Cut(rest, "\n"+to)
	file = filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(file, []byte(before+to+after), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

type ended struct {
	out, errs string
	code      int
}

// atOnce starts the bench of the second operator some time after that of the first, and returns both.
func atOnce(files [2]string, envs [2]map[string]string, after time.Duration) (both [2]ended) {
	first := make(chan ended, 1)
	go func() {
		out, errs, code := inProcess(envs[0], "bench", "-f", files[0])
		first <- ended{out, errs, code}
	}()
	<-time.After(after)
	both[1].out, both[1].errs, both[1].code = inProcess(envs[1], "bench", "-f", files[1])
	both[0] = <-first
	return both
}

// The lab's time: commands in guests and on hosts take this share of their real time.
const scale = 0.03

// takeTurns lets two operators measure at once, the second 0 to 3 s of the lab's time after the first: both measure the whole
// fabric.
func takeTurns(t *testing.T, tries int) {
	files, envs := operators(t)
	began := time.Now()
	succeeds(t, envs[0], "bench", "-f", files[0])
	t.Logf("alone: %.1f s of the lab's time", time.Since(began).Seconds()/scale)
	chance, waited := rand.New(rand.NewPCG(47, 5)), 0
	for range tries {
		apart := time.Duration(3000*chance.Float64()) * time.Millisecond
		told := ""
		for i, got := range atOnce(files, envs, time.Duration(scale*float64(apart))) {
			if got.code != 0 || !strings.Contains(got.out, "2 of 2 pairs at expected line rate") || strings.Contains(got.out, "other traffic") {
				t.Errorf("operator %d, second after %s: exit %d\n%s%s", i+1, apart, got.code, got.out, got.errs)
			}
			if strings.Contains(got.errs, "note: waiting until run ") {
				waited++
				told += fmt.Sprintf(", operator %d waited", i+1)
			}
		}
		t.Logf("second after %s%s", apart, told)
	}
	if waited == 0 {
		t.Error("nobody waited for the other")
	}
}

func TestOperatorsMeasureInTurn(t *testing.T) {
	t.Parallel()
	takeTurns(t, 2)
}

// TestOtherTrafficIsNamed measures a slow card, alone and while others send over the host's RDMA device or its port; the latter is seen
// only while no test runs. Beside other traffic the report does not blame the fabric. The account may not take the lease, which the report says.
func TestOtherTrafficIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "done", Hosts: 2, VMs: 2})
	b.env["GOVC_USERNAME"] = "readonly@vsphere.local"
	var device, port string
	b.change(world.Event{What: world.HostHardware, Host: "esx-01"}, func(s *world.State) {
		for _, p := range s.Host("esx-01").PNICs {
			if p.RDMA != nil && s.SwitchOf("esx-01", p.Device) != "" {
				p.LargeShare, device, port = 0.4, p.RDMA.Name, p.Device
			}
		}
	})
	_, alone, _ := b.run("bench", "-f", "ANSWERS", "--pairs", "vm-01:vm-02")
	if !strings.Contains(alone, "broken, exit code 1") || strings.Contains(alone, "beside other traffic") ||
		!strings.Contains(strings.Join(strings.Fields(alone), " "), "other runs of rdma-setup were not kept from measuring at the same time: ") {
		t.Errorf("alone:\n%s", alone)
	}

	for load, want := range map[string]struct {
		code      int
		hint, end string
	}{
		device: {0, "hint: measured beside other traffic: 100.0 Gb/s, which is what the link carries together with the test;", "works_with_warnings"},
		port:   {1, "hint: measured beside other traffic: 100.0 Gb/s while no test ran; measure again without it", "not_measured"},
	} {
		over, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			tick := time.NewTicker(2 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-over:
					return
				case <-tick.C:
					_ = b.lab.World().AddTraffic("esx-01", load, world.Counters{BytesSent: 64 << 30})
				}
			}
		}()
		code, out, _ := b.run("bench", "-f", "ANSWERS", "--pairs", "vm-01:vm-02")
		close(over)
		<-stopped
		out = strings.Join(strings.Fields(out), " ")
		if code != want.code || !strings.Contains(out, want.hint) || !strings.Contains(out, want.end) {
			t.Errorf("beside other traffic of %s: exit %d\n%s", load, code, out)
		}
		for _, blame := range []string{"check for loss", "look for loss", "PFC", "PCIe"} {
			if strings.Contains(out, blame) {
				t.Errorf("%q beside other traffic:\n%s", blame, out)
			}
		}
	}
}
