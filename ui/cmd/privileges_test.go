package cmd_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func TestTheRoleOfPVRDMAIsExact(t *testing.T) {
	t.Parallel()
	roleIsExact(t, answers.PVRDMA, "")
}

// roleIsExact uses an account that has exactly the privileges that generate role prints: apply and rollback work with them. Without
// any one of them, apply stops before the first write and names the missing privilege.
func roleIsExact(t *testing.T, mode answers.Mode, scenario string) {
	l := openLab(t, lab.Options{Scenario: scenario, Hosts: 1, VMs: 1, Dir: t.TempDir(), RebootTime: 1200 * time.Millisecond})
	env := environment(l, t.TempDir())
	role := newRole(t, env)
	all := checks.Privileges(mode)
	apply := []string{"apply", "-f", filepath.Join(l.Dir(), "answers-"+string(mode)+".yaml"), "--yes"}
	for _, missing := range all {
		role.hold(t, slices.DeleteFunc(slices.Clone(all), func(p string) bool { return p == missing }))
		_, errs, code := inProcess(env, apply...)
		if code != 3 || !strings.Contains(errs, missing) {
			t.Errorf("without %s: exit %d, want 3 and its name:\n%s", missing, code, errs)
		}
	}
	if out, _, _ := inProcess(env, "runs", "-o", "json"); !strings.Contains(out, `"runs": []`) {
		t.Fatalf("a run was begun without a privilege:\n%s", out)
	}
	role.hold(t, all)
	for _, words := range [][]string{apply, {"rollback", "--yes"}} {
		succeeds(t, env, words...)
	}
}

// TestTheRoleMovesBystanders: the role of SR-IOV is sufficient to request a DRS placement for a VM of others, to check the move,
// and to move it.
func TestTheRoleMovesBystanders(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-drs-manual", Hosts: 2, VMs: 2})
	file = edited(t, file, "vfs: 8", "vfs: 8\nmeasure: {bandwidth: false, latency: false}\nrun: {bystanders: migrate}")
	newRole(t, b.env).hold(t, checks.Privileges(answers.SRIOV))
	b.must(0, "apply", "-f", file, "--yes")
	if calls := b.lab.World().Log.Calls(); calls["RelocateVM_Task"] == 0 || calls["CheckMigrate_Task"] == 0 {
		t.Errorf("calls %v", calls)
	}
}

// TestImagesNeedTheRoleAtTheRoot: the image of a cluster needs its privileges at the root of the inventory and on the cluster. All
// privileges on the datacenter are not enough, even if the image can be read.
func TestImagesNeedTheRoleAtTheRoot(t *testing.T) {
	t.Parallel()
	base := checks.Privileges(answers.SRIOV)
	all := slices.Concat(base, checks.Images())
	reads := slices.DeleteFunc(slices.Clone(all),
		func(p string) bool { return strings.HasPrefix(p, "VcIntegrity.") && strings.HasSuffix(p, ".Write") })
	for name, row := range map[string]struct {
		dc, root  []string
		onCluster bool // the role of the root is assigned on the cluster too
		code      int
		says      string
	}{
		"only on the datacenter":         {all, nil, false, 3, "at the root of the inventory"},
		"at the root only what reads":    {all, reads, false, 3, "VcIntegrity.lifecycleSoftwareSpecification.Write"},
		"at the root":                    {all, all, false, 0, ""},
		"at the root and on the cluster": {base, all, true, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, file := sriovBench(t, lab.Options{Scenario: "sriov-image", Hosts: 1, VMs: 1})
			r := newRole(t, b.env)
			r.hold(t, row.dc)
			if row.root != nil {
				id, err := r.auth.AddRole(t.Context(), "lifecycle", row.root)
				testclass.OK(t, err)
				role{auth: r.auth, id: id, root: r.root}.atRoot(t)
				if row.onCluster {
					c, err := r.find.DefaultClusterComputeResource(t.Context())
					testclass.OK(t, err)
					on := []types.Permission{{Principal: "readonly@vsphere.local", RoleId: id, Propagate: true}} // hosts are asked for their components
					testclass.OK(t, r.auth.SetEntityPermissions(t.Context(), c.Reference(), on))
				}
			}
			if code, out, errs := b.run("apply", "-f", file, "--yes"); code != row.code || !strings.Contains(errs, row.says) {
				t.Errorf("exit %d\n%s%s", code, out, errs)
			}
		})
	}
}

// TestTheRoleUpgradesHardware: the role of PVRDMA is sufficient to upgrade the hardware version of a VM.
func TestTheRoleUpgradesHardware(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	b := newBench(t, lab.Options{Scenario: "gpudirect-old", Hosts: 2, VMs: 2})
	file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "    guest: {", "    hardware: upgrade\n    guest: {")
	file = edited(t, file, "mode: pvrdma", "mode: pvrdma\nmeasure: {bandwidth: false, latency: false}")
	newRole(t, b.env).hold(t, checks.Privileges(answers.PVRDMA))
	b.must(0, "apply", "-f", file, "--yes")
	if calls := b.lab.World().Log.Calls(); calls["UpgradeVM_Task"] == 0 {
		t.Errorf("calls %v", calls)
	}
}

// TestMissingPrivilegeOnOneHost: the account has its role everywhere, except for a role without one privilege on one host. Nothing
// is changed, and the first lines name the host, the privilege and what to do. If the check is skipped, vCenter refuses the
// operation during the run, and the first lines of the report say the same in every format.
func TestMissingPrivilegeOnOneHost(t *testing.T) {
	t.Parallel()
	b := newBench(t, lab.Options{Hosts: 3, VMs: 3})
	r := newRole(t, b.env)
	all := checks.Privileges(answers.PVRDMA)
	r.hold(t, all)
	const missing = "Host.Config.NetService"
	r.lacks(t, "esx-02", slices.DeleteFunc(slices.Clone(all), func(p string) bool { return p == missing }))
	top := func(text string) string {
		lines := strings.Split(text, "\n")
		return strings.Join(strings.Fields(strings.Join(lines[:min(12, len(lines))], "\n")), " ")
	}
	code, _, said := b.run("apply", "-f", "ANSWERS", "--yes")
	first := top(said)
	if code != 3 || !strings.Contains(first, "esx-02") || !strings.Contains(first, missing) || !strings.Contains(first, "hint: Grant") ||
		strings.Contains(first, "esx-01") {
		t.Errorf("exit %d\n%s", code, said)
	}
	for call, n := range b.lab.World().Log.Calls() {
		if strings.HasPrefix(call, "Reconfig") || strings.HasPrefix(call, "CreateDVS") || call == "ShutdownGuest" {
			t.Errorf("%s was called %d times", call, n)
		}
	}
	code, out, said := b.run("apply", "-f", "ANSWERS", "--yes", "--skip", "VC-PRIV-003")
	if code != 5 {
		t.Fatalf("exit %d\n%s%s", code, out, said)
	}
	reports := map[string]string{"terminal, apply": out}
	for _, format := range []string{"terminal", "html", "markdown"} {
		_, reports[format], _ = b.run("report", "-o", format)
	}
	for format, text := range reports {
		first := top(text)
		for _, want := range []string{"esx-02: enable firewall ruleset pvrdma", "permission denied", missing, "emedy: grant " + missing} {
			if !strings.Contains(first, want) {
				t.Errorf("%s: %q is not in the first 12 lines:\n%s", format, want, first)
			}
		}
	}
}

// If the account cannot write the shared lock, the run reports it and continues with the local lock.
func TestSharedLockWithoutItsPrivileges(t *testing.T) {
	t.Parallel()
	l := openLab(t, lab.Options{Hosts: 1, VMs: 1, Dir: t.TempDir()})
	env := environment(l, t.TempDir())
	newRole(t, env).hold(t, append(checks.Privileges(answers.PVRDMA), checks.SharedLock()...)) // on the datacenter, not on the root
	b := testclass.Read(t, filepath.Join(l.Dir(), "answers-pvrdma.yaml"))
	path := filepath.Join(t.TempDir(), "answers.yaml")
	testclass.OK(t, os.WriteFile(path, append(b, "run: {lock: shared}\nmeasure: {bandwidth: false, latency: false}\n"...), 0o600))
	_, errs, code := inProcess(env, "apply", "-f", path, "--yes")
	if code != 0 || !strings.Contains(errs, "WARNING: the account may not write the shared lock") ||
		!strings.Contains(errs, "Global.ManageCustomFields") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	out, _, _ := inProcess(env, "generate", "role", "--mode", "pvrdma")
	for _, p := range checks.SharedLock() {
		if !strings.Contains(out, p) {
			t.Errorf("generate role does not have %s:\n%s", p, out)
		}
	}
}

// A role is the role of the account in the environment.
type role struct {
	root types.ManagedObjectReference
	auth *object.AuthorizationManager
	find *find.Finder
	id   int32
}

// lacks assigns the account another role on one host.
func (r role) lacks(t *testing.T, host string, privileges []string) {
	t.Helper()
	id, err := r.auth.AddRole(t.Context(), "rdma-setup on "+host, privileges)
	testclass.OK(t, err)
	h, err := r.find.HostSystem(t.Context(), "*/"+host)
	testclass.OK(t, err)
	if err := r.auth.SetEntityPermissions(t.Context(), h.Reference(),
		[]types.Permission{{Principal: "readonly@vsphere.local", RoleId: id, Propagate: true}}); err != nil {
		t.Fatal(err)
	}
}

// newRole logs in as the administrator, creates a role, assigns it to the lab's read-only account on the datacenter only, as a
// careful administrator does, and sets that account in env.
func newRole(t *testing.T, env map[string]string) role {
	t.Helper()
	c := outsider(t.Context(), t, env)
	const account = "readonly@vsphere.local"
	r := role{auth: object.NewAuthorizationManager(c.Client), find: find.NewFinder(c.Client), root: c.ServiceContent.RootFolder}
	var err error
	if r.id, err = r.auth.AddRole(t.Context(), "rdma-setup", nil); err != nil {
		t.Fatal(err)
	}
	dc, err := r.find.DefaultDatacenter(t.Context())
	testclass.OK(t, err)
	if err := r.auth.SetEntityPermissions(t.Context(), dc.Reference(),
		[]types.Permission{{Principal: account, RoleId: r.id, Propagate: true}}); err != nil {
		t.Fatal(err)
	}
	env["GOVC_USERNAME"] = account
	return r
}

// atRoot assigns the role at the root of the inventory, without its children.
func (r role) atRoot(t *testing.T) {
	t.Helper()
	if err := r.auth.SetEntityPermissions(t.Context(), r.root,
		[]types.Permission{{Principal: "readonly@vsphere.local", RoleId: r.id}}); err != nil {
		t.Fatal(err)
	}
}

func (r role) hold(t *testing.T, privileges []string) {
	t.Helper()
	testclass.OK(t, r.auth.UpdateRole(t.Context(), r.id, "rdma-setup", privileges))
}

// patience are time limits with which a busy machine is not reported as a host or guest that does not answer.
var patience = map[string]string{"RDMA_SETUP_HOST_TIMEOUT": "4m", "RDMA_SETUP_GUEST_TIMEOUT": "2m"}

// environment returns the variables that the lab prints, with a state directory.
func environment(l *lab.Lab, state string) map[string]string {
	env := maps.Clone(patience)
	env["HOME"], env["XDG_STATE_HOME"], env["XDG_CONFIG_HOME"] = state, state, state
	for _, kv := range l.Env() {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	return env
}

// inProcess runs a command line in this process, without a terminal.
func inProcess(env map[string]string, args ...string) (stdout, stderr string, code int) {
	return inProcessWith(env, "", args...)
}

// inProcessWith does the same with a text on stdin.
func inProcessWith(env map[string]string, in string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = cmd.Run(context.Background(), &console.Env{
		Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errs, Getenv: func(key string) string { return env[key] }, Now: time.Now,
		Terminal:   func() bool { return false },
		Executable: os.Executable,
		Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
	}, args)
	return out.String(), errs.String(), code
}

// succeeds runs a command, which must exit with 0.
func succeeds(t *testing.T, env map[string]string, args ...string) {
	t.Helper()
	if out, errs, code := inProcess(env, args...); code != 0 {
		t.Fatalf("%v: exit %d\n%s%s", args, code, out, errs)
	}
}
