package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// TestBackupsBeforeARun: targets are saved before the first change, and a page describes how to undo the run manually.
func TestBackupsBeforeARun(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "drifted", Hosts: 1, VMs: 1})
	newRole(t, b.env).hold(t, checks.Privileges(answers.PVRDMA))
	code, _, said := b.run("apply", "-f", "ANSWERS", "--yes")
	if code != 0 && code != 1 { // the pair of one VM is not measured
		t.Fatalf("exit %d\n%s", code, said)
	}
	if strings.Contains(said, "WARNING: not saved") {
		t.Errorf("something is not saved:\n%s", said)
	}
	dirs, err := filepath.Glob(filepath.Join(b.env["XDG_STATE_HOME"], "rdma-setup", "runs", "*", "backup"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v, %v", dirs, err)
	}
	private(t, dirs[0], 0o700)
	at := func(name string) string { return filepath.Join(dirs[0], name) }
	if devices, err := os.ReadFile(at("vms.json")); err != nil || !strings.Contains(string(devices), `"vm-01"`) ||
		!strings.Contains(string(devices), `"_typeName": "VirtualVmxnet3"`) {
		t.Errorf("vms.json: %v\n%s", err, devices)
	}
	var export []struct{ EntityType, Name, ConfigBlob string }
	readJSON(t, at("switch-RDMA-DVS.json"), &export)
	if len(export) < 2 || export[0].Name != "RDMA-DVS" || export[0].ConfigBlob == "" {
		t.Errorf("the export of the switch: %+v", export)
	}
	private(t, at("undo.md"), 0o600)
	page := testclass.Read(t, at("undo.md"))
	if strings.Contains(string(page), "before the first change, from the plan") || !strings.Contains(string(page), "## Host esx-01") ||
		!strings.Contains(string(page), "govc host.esxcli -host 'esx-01' ") ||
		!strings.Contains(string(page), "vim-cmd hostsvc/firmware/backup_config") {
		t.Errorf("the page:\n%s", page)
	}
}

func private(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// TestResumeKeepsThePageOfTheRun: a run sets up one host and cannot evacuate the other. The resume keeps the backups from before
// the run and does not save already changed targets again. It saves a VM that the first attempt did not touch in a separate file,
// and the page then includes the steps for that VM.
func TestResumeKeepsThePageOfTheRun(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-half", Hosts: 2, VMs: 2,
		Faults: []string{"host=esx-02,method=EnterMaintenanceMode_Task,do=fault:NoPermission"}})
	file = edited(t, file, "vfs: 8", "vfs: 8\nmeasure: {bandwidth: false, latency: false}")
	b.must(5, "apply", "-f", file, "--yes")
	b.lab.World().Faults.Clear()
	dirs, err := filepath.Glob(filepath.Join(b.env["XDG_STATE_HOME"], "rdma-setup", "runs", "*", "backup"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v, %v", dirs, err)
	}
	read := func(name string) string {
		text := testclass.Read(t, filepath.Join(dirs[0], name))
		return string(text)
	}
	const mark = "\n## VM vm-02"
	page := read("undo.md")
	var devices map[string]json.RawMessage
	readJSON(t, filepath.Join(dirs[0], "vms.json"), &devices)
	first, err := json.Marshal(map[string]json.RawMessage{"vm-01": devices["vm-01"]})
	testclass.OK(t, err)
	testclass.Write(t, filepath.Join(dirs[0], "vms.json"), string(first))
	testclass.Write(t, filepath.Join(dirs[0], "host-esx-01.tgz"), "bundle")
	b.must(0, "resume", "--yes")
	var more map[string]json.RawMessage
	readJSON(t, filepath.Join(dirs[0], "vms-2.json"), &more)
	if read("vms.json") != string(first) || more["vm-02"] == nil || more["vm-01"] != nil {
		t.Errorf("vms.json was replaced, or the VM of the resume is not saved beside it: %s", more)
	}
	after := read("undo.md")
	if strings.Contains(page, mark) || !strings.Contains(after, mark) || !strings.Contains(after, "- vms.json: ") ||
		!strings.Contains(after, "- vms-2.json: ") || !strings.Contains(after, "- host-esx-01.tgz: ") {
		t.Errorf("the page before the resume:\n%s\nand after it:\n%s", page, after)
	}
}

// TestInterruptDuringBackups: creating backups can take minutes; Ctrl-C during that time ends the program immediately without
// changes.
func TestInterruptDuringBackups(t *testing.T) {
	testclass.Raced(t)
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "drifted", Hosts: 1, VMs: 1, Faults: []string{"method=DVSManagerExportEntity_Task,do=hang"}})
	b.interrupts = make(chan os.Signal, 1)
	began := make(chan time.Time, 1)
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if slices.ContainsFunc(b.lab.World().Log.Events(), func(e world.Event) bool { return e.What == world.FaultApplied }) {
				began <- time.Now()
				b.interrupts <- os.Interrupt
				return
			}
		}
	}()
	defer close(ended)
	b.must(130, "apply", "-f", "ANSWERS", "--yes")
	if took := time.Since(<-began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	b.wentDown()
}
