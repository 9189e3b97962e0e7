package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

// reasons are the causes that a row may give for not having been read, by check without --pairs and --esxi-shell.
var reasons = regexp.MustCompile(strings.Join([]string{
	`this needs the ESXi shell`, `check --pairs`, `check --save-baseline`, `bench --nccl`, // what this command may not do
	// what did not answer
	`the VM is \w+$`, `could not be read: `, `can only be read by root`, `no peer was tested`, `the small ones did not pass`,
	`confirmed\.`, `the licence cannot be read`, // what waits for the operator's word
	// what does not exist
	`the health check is off`, `no minimum is known for`, `whose parameters this program does not know`, `neither bulletin lists`,
	`VFs of \S+ cards`, `where no rail has most`, `has no MAC of`, `no RDMA card to be near to`, `does not report which GPU`, `as PVRDMA$`,
	`the guest has no NVIDIA driver`, `nvidia-smi .* (report|has no NIC|describes)`, `mokutil`, `ibv_devinfo reports no`,
	`needs the module rdma_cm`,
	`needs three measured pairs`, `from 200G on`, `in both directions`, // what is too little to judge
}, "|"))

// walk runs check on a lab and reports the rows that are neither read, nor inapplicable, nor unread for a stated reason. It returns
// the rows that were read.
func walk(t *testing.T, env map[string]string, file string, flags ...string) map[string]bool {
	t.Helper()
	out, errs, _ := inProcess(env, append([]string{"check", "-f", file, "-o", "json"}, flags...)...)
	var doc struct {
		Results []checks.Finding
		Counts  map[string]int
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if got := checks.Count(doc.Results); got[checks.Unknown] != doc.Counts[string(checks.Unknown)] ||
		got[checks.NotRead] != doc.Counts[string(checks.NotRead)] {
		t.Errorf("%s: counts %v of %v", filepath.Base(file), doc.Counts, got)
	}
	listed, read := map[string]bool{}, map[string]bool{}
	for _, f := range doc.Results {
		listed[f.ID] = true
		read[f.ID] = read[f.ID] || f.Status != checks.Unknown
		if f.Status == checks.Unknown && !reasons.MatchString(f.Evidence) {
			t.Errorf("%s: %s of %s is not read, without a reason: %s", filepath.Base(file), f.ID, f.Target, f.Evidence)
		}
	}
	if got, all := len(listed)+doc.Counts[string(checks.NotApplicable)], len(catalogue.Checks()); got != all {
		t.Errorf("%s: %d rows are listed or not applicable, the catalogue has %d", filepath.Base(file), got, all)
	}
	return read
}

// TestEveryRowIsReadOrSaysWhy walks a handful of scenarios; TestE2EEveryRow walks all of them.
func TestEveryRowIsReadOrSaysWhy(t *testing.T) {
	t.Parallel()
	for scenario, mode := range map[string]string{"done": "pvrdma", "gpu-pvrdma": "gpudirect", "sriov-api": "sriov", "nouveau": "gpudirect",
		"gpudirect-vgpu": "gpudirect", "broken-sudo": "pvrdma"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, lab.Options{Scenario: scenario, Hosts: 2, VMs: 2, RebootTime: 100 * time.Millisecond})
			walk(t, b.env, filepath.Join(b.lab.Dir(), "answers-"+mode+".yaml"))
		})
	}
}
