//go:build e2e

package cmd_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

// neverRead are the rows that no walk reads, with the reason.
var neverRead = map[string]string{
	"DVS-HEALTH-010":    "the lab's switches have the health check off, as by default",
	"GST-SECBOOT-033":   "the lab's guests have no mokutil",
	"PAIR-BW-BIDIR-007": "the walked sites have 100G",
	"PAIR-NCCL-013":     "only bench --nccl runs NCCL",
}

// TestE2EEveryRow walks all scenarios, with the answers of each mode, and a few sites that are set up, with pairs and the ESXi
// shell. Each row of the catalogue is read somewhere.
func TestE2EEveryRow(t *testing.T) {
	read := map[string]bool{}
	start := func(t *testing.T, o lab.Options) *bench {
		if o.Hosts == 0 {
			o.Hosts, o.VMs = 2, 2
		}
		o.RebootTime = 100 * time.Millisecond
		return newBench(t, o)
	}
	for _, s := range scenario.All() {
		t.Run(s.Name, func(t *testing.T) {
			b := start(t, lab.Options{Scenario: s.Name, Hosts: s.Hosts, VMs: s.VMs})
			for _, mode := range []string{"pvrdma", "sriov", "gpudirect"} {
				maps.Copy(read, only(walk(t, b.env, filepath.Join(b.lab.Dir(), "answers-"+mode+".yaml"))))
			}
		})
	}
	for name, mode := range map[string]string{"done": "pvrdma", "sriov-half": "sriov", "gpudirect-ats": "gpudirect", "vgpu-gdr": "gpudirect"} {
		t.Run(name+" set up", func(t *testing.T) {
			hosts := 3
			if name == "vgpu-gdr" {
				hosts = 2 // a ring of two measures both directions
			}
			b := start(t, lab.Options{Scenario: name, Hosts: hosts, VMs: hosts})
			for i := range hosts {
				if err := b.lab.World().SetService(fmt.Sprintf("esx-%02d", i+1), "TSM-SSH", true); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(b.lab.Dir(), "answers-"+mode+".yaml")
			succeeds(t, b.env, "apply", "-f", file, "--yes")
			if out, errs, code := inProcess(b.env, "check", "-f", file, "--save-baseline"); code > 1 {
				t.Fatalf("exit %d\n%s%s", code, out, errs)
			}
			maps.Copy(read, only(walk(t, b.env, file, "--pairs", "ring", "--esxi-shell")))
		})
	}
	for _, c := range catalogue.Checks() {
		if why := neverRead[c.ID]; read[c.ID] == (why != "") {
			t.Errorf("%s: read %t, in the list of unread rows: %q", c.ID, read[c.ID], why)
		}
	}
}

// only returns the rows that are true.
func only(rows map[string]bool) map[string]bool {
	out := maps.Clone(rows)
	maps.DeleteFunc(out, func(_ string, read bool) bool { return !read })
	return out
}
