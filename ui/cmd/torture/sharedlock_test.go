package torture

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A foreigner reads and writes the shared lock with an independent client.
type foreigner struct {
	t       *testing.T
	fields  *object.CustomFieldsManager
	cluster *object.ClusterComputeResource
}

func (s *site) foreigner() *foreigner {
	s.t.Helper()
	u, err := url.Parse(s.env["GOVC_URL"])
	if err != nil {
		s.t.Fatal(err)
	}
	u.User = url.UserPassword(s.env["GOVC_USERNAME"], s.env["GOVC_PASSWORD"])
	c, err := govmomi.NewClient(s.t.Context(), u, true)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Logout(context.WithoutCancel(s.t.Context())) })
	f := &foreigner{t: s.t}
	if f.cluster, err = find.NewFinder(c.Client).DefaultClusterComputeResource(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if f.fields, err = object.GetCustomFieldsManager(c.Client); err != nil {
		s.t.Fatal(err)
	}
	return f
}

// key returns the key of the lock's attribute, 0 if there is none.
func (f *foreigner) key() int32 {
	f.t.Helper()
	defs, err := f.fields.Field(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, d := range defs {
		if d.Name == "rdma-setup.lock."+f.cluster.Reference().Value {
			return d.Key
		}
	}
	return 0
}

// holder returns the value of the attribute on the cluster.
func (f *foreigner) holder() (h map[string]any) {
	f.t.Helper()
	var c mo.ClusterComputeResource
	if err := f.cluster.Properties(f.t.Context(), f.cluster.Reference(), []string{"customValue"}, &c); err != nil {
		f.t.Fatal(err)
	}
	b, err := json.Marshal(c.CustomValue)
	if err != nil {
		f.t.Fatal(err)
	}
	var values []struct {
		Key   int32
		Value string
	}
	if err := json.Unmarshal(b, &values); err != nil {
		f.t.Fatal(err)
	}
	for _, v := range values {
		if v.Key == f.key() && json.Unmarshal([]byte(v.Value), &h) != nil {
			f.t.Fatalf("%q", v.Value)
		}
	}
	return h
}

// hold sets a lock on the cluster.
func (f *foreigner) hold(h map[string]any) {
	f.t.Helper()
	key := f.key()
	if key == 0 {
		def, err := f.fields.Add(f.t.Context(), "rdma-setup.lock."+f.cluster.Reference().Value, "ClusterComputeResource", nil, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		key = def.Key
	}
	b, err := json.Marshal(h)
	if err == nil {
		err = f.fields.Set(f.t.Context(), f.cluster.Reference(), key, string(b))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func lease(run, machine string, until time.Duration) map[string]any {
	now := time.Now().UTC()
	return map[string]any{"run": run, "user": "ada", "machine": machine, "boot": "x", "pid": 1, "since": now.Add(-time.Hour),
		"until": now.Add(until)}
}

// TestSharedLock has two operators with separate state directories: the second is refused during the run of the first, and
// continues when the lock is free, has expired, or belongs to a process that has ended.
func TestSharedLock(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	s := serve(t, modes[0].small())
	s.answers = s.rewrite(s.answers, func(a *answers.Answers) { a.Run.Lock = answers.LockShared })
	b := s.another()
	f := s.foreigner()
	testclass.OK(t, s.lab.World().Faults.Add("method=CreateDVS_Task,do=slow:15s"))
	first := make(chan said, 1)
	go func() { first <- s.here(0, s.apply()...) }()
	s.until("the first is at work", func() bool {
		for _, e := range s.lab.World().Log.Events() {
			if e.What == world.FaultApplied {
				return true
			}
		}
		return false
	})
	id, _ := s.run()
	if h := f.holder(); h["run"] != id || h["user"] != s.env["GOVC_USERNAME"] {
		t.Errorf("the lock says %v, the run is %s", h, id)
	}
	got := b.here(0, b.apply()...)
	b.refusedWith(got, 3, "run "+id+" of "+s.env["GOVC_USERNAME"]+" on ", "since 20", "holds the shared lock")
	if b.changed() {
		t.Error("the second has begun a run")
	}
	b.refusedWith(b.here(0, append(b.apply(), "--break-lock")...), 3, id) // the lock has not expired
	if got := <-first; got.code != 0 {
		t.Fatalf("the first: exit %d\n%s", got.code, got)
	}
	if f.key() != 0 {
		t.Error("the lock is still there")
	}

	rollback := []string{"rollback", id, "--yes"}
	f.hold(lease("20260101-000000-pvrdma-abcd", "jump-7", 10*time.Minute))
	s.refusedWith(s.here(0, rollback...), 3, "run 20260101-000000-pvrdma-abcd of ada on jump-7", "--break-lock")
	f.hold(lease("20260101-000000-pvrdma-abcd", "jump-7", -time.Minute))
	s.refusedWith(s.here(0, rollback...), 3, "jump-7", "which has expired", "add --break-lock")
	// Its owner renews it while the operator is asked: consent to take over an expired lock does not apply to a renewed one.
	var questions []string
	s.confirm = func(question string) (bool, error) {
		if questions = append(questions, question); strings.Contains(question, "Take it over") {
			f.hold(lease("20260101-000000-pvrdma-abcd", "jump-7", 10*time.Minute))
		}
		return true, nil
	}
	s.refusedWith(s.here(0, "rollback", id), 3, "run 20260101-000000-pvrdma-abcd of ada on jump-7", "the lock expires at")
	if !strings.Contains(strings.Join(questions, "\n"), "has expired. Take it over") {
		t.Errorf("asked: %q", questions)
	}
	// Ctrl-C at the prompt ends the program; it does not count as a "no".
	f.hold(lease("20260101-000000-pvrdma-abcd", "jump-7", -time.Minute))
	s.confirm = func(question string) (bool, error) {
		if strings.Contains(question, "Take it over") {
			return false, backends.Errorf(backends.KindInterrupted, "", "", "interrupted at a prompt")
		}
		return true, nil
	}
	s.refusedWith(s.here(0, "rollback", id), 130, "interrupted at a prompt")
	s.confirm = nil
	f.hold(lease("20260101-000000-pvrdma-abcd", "jump-7", -time.Minute))
	s.refusedWith(s.here(0, append(rollback, "--break-lock")...), 0, "note: ", "taking over", "jump-7", "which has expired")
	if f.key() != 0 {
		t.Error("the lock is still there")
	}

	// A lock of an ended process on this machine is no longer valid.
	gone := exec.Command("true")
	testclass.OK(t, gone.Run())
	boot := testclass.Read(t, "/proc/sys/kernel/random/boot_id")
	ns, err := os.Readlink("/proc/self/ns/pid")
	testclass.OK(t, err)

	name, err := os.Hostname()
	testclass.OK(t, err)
	h := lease("20260101-000000-pvrdma-abcd", name, 10*time.Minute)
	h["boot"], h["pid"] = strings.TrimSpace(string(boot))+" "+ns, gone.Process.Pid
	f.hold(h)
	s.killed("intent", s.child("after:intent:2", s.apply()...))
	run, _ := s.run()
	if h := f.holder(); h["run"] != run {
		t.Errorf("the killed run %s has left the lock to %v", run, h)
	}
	got = s.back() // the same run acquires its own lock again immediately
	if got.code != 0 || strings.Contains(got.errs, "note: ") || f.key() != 0 {
		t.Errorf("exit %d, key %d\n%s", got.code, f.key(), got)
	}
}

// TestSharedLockThatIsTakenAway removes the lock during the run: no VM is taken out of service after that.
func TestSharedLockThatIsTakenAway(t *testing.T) {
	t.Parallel()
	s := serve(t, modes[0].small())
	s.answers = s.rewrite(s.answers, func(a *answers.Answers) { a.Run.Lock = answers.LockShared })
	f := s.foreigner()
	testclass.OK(t, s.lab.World().Faults.Add("method=CreateDVS_Task,do=slow:2s"))
	first := make(chan said, 1)
	go func() { first <- s.here(0, s.apply()...) }()
	s.until("the run holds the lock", func() bool { return f.key() != 0 && f.holder() != nil })
	s.until("the switch is being made", func() bool {
		for _, e := range s.lab.World().Log.Events() {
			if e.What == world.FaultApplied {
				return true
			}
		}
		return false
	})
	testclass.OK(t, f.fields.Remove(t.Context(), f.key()))
	got := <-first
	if got.code != 5 || !strings.Contains(got.out, "another run took over the shared lock of this run") {
		t.Errorf("exit %d\n%s", got.code, got)
	}
	for _, e := range s.lab.World().Log.Events() {
		if e.What == world.VMShutdown {
			t.Errorf("%s was told to shut down", e.VM)
		}
	}
}
