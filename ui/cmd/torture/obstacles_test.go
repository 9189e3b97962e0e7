package torture

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// An obstacle is a condition in a guest that prevents a rollback from completing while it lasts.
type obstacle struct {
	name   string
	mode   mode     // empty: PVRDMA
	before string   // what root runs in the guest before the run
	apply  []string // faults during the run
	code   int      // exit code of that run
	back   []string // faults during the rollback
	says   string   // why the rollback cannot complete
	rests  string   // what the rollback reports as remaining; empty: the rollback completes
}

const (
	noRoom   = ",do=fail:mktemp: failed to create file via template: No space left on device"
	readOnly = ",do=fail:mktemp: failed to create file via template: Read-only file system"
	noImage  = "command=update-initramfs,do=fail:update-initramfs: failed for /boot/initrd.img: No space left on device"
	noWrite  = ",do=fail:dpkg: error: failed to write status database: No space left on device"
	noRemove = ",do=fail:rm: cannot remove: Read-only file system"
)

var obstacles = []obstacle{
	{name: "a full boot file system", mode: mode{name: "gpudirect", scenario: "nouveau", reboot: 200 * time.Millisecond},
		back: []string{noImage}, says: "No space left on device", rests: "nouveau"},
	// the RAM disk was not renewed
	{name: "a boot file system that was full before", code: 1, apply: []string{noImage}, back: []string{noImage}},
	{name: "a full etc", before: "echo \\# of somebody else >/etc/modules-load.d/rdma-setup.conf",
		back: []string{"command=mktemp /etc" + noRoom}, says: "No space left on device", rests: "file /etc/modules-load.d/rdma-setup.conf has"},
	{name: "etc is read-only after the first file", code: 1,
		apply: []string{"command=mktemp /etc/modules-load.d" + readOnly, "command=mktemp /etc/netplan" + readOnly,
			"command=mktemp /etc/security" + readOnly},
		back: []string{"command=mktemp /etc" + readOnly, "command=rm -f -- /etc" + noRemove},
		says: "Read-only file system", rests: "rdma-setup-vmw_pvrdma.service"},
	{name: "the power fails while dpkg is at work", code: 1,
		apply: []string{"command=dpkg --force-confdef --force-confold --status-fd 9 --no-triggers --unpack,nth=1,do=reset:3"},
		back:  []string{"command=dpkg --force-confdef" + noWrite},
		says:  "No space left on device", rests: "packages"},
}

// TestObstaclesToARollback interrupts a rollback with a fault in a guest. While the fault lasts, the rollback exits with 5 and
// names what remains. Without the fault the same command exits with 0 and restores everything, and so do the next run and its
// rollback.
func TestObstaclesToARollback(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for _, o := range obstacles {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			o.hinder(t)
		})
	}
}

func (o obstacle) hinder(t *testing.T) {
	if o.mode.name == "" {
		o.mode = modes[0]
	}
	s := serve(t, o.mode.small())
	if o.before != "" {
		if out, err := s.ask(s.vms[0], "echo '"+s.env["RDMA_SETUP_SUDO_PASSWORD"]+"' | sudo -S -p '' sh -c \""+o.before+"\""); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	look := func() map[string]string {
		facts := s.facts()
		for key, value := range facts { // nouveau is loaded again only at the next boot
			if strings.HasSuffix(key, " modules") {
				facts[key] = strings.ReplaceAll(value, "nouveau ", "")
			}
		}
		return facts
	}
	start := look()
	faults := s.lab.World().Faults
	add := func(rules []string) {
		for _, rule := range rules {
			if err := faults.Add(rule); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(o.apply)
	if got := s.here(0, s.apply()...); (got.code != 0) != (o.code != 0) {
		t.Fatalf("apply: exit %d, want %d\n%s", got.code, o.code, got)
	}
	hit := 0
	for _, e := range s.lab.World().Log.Events() {
		if e.What == world.FaultApplied {
			hit++
		}
	}
	if len(o.apply) > 0 && hit == 0 {
		t.Fatal("the run met no obstacle")
	}
	s.waitUntilIdle()
	faults.Clear()
	add(o.back)
	for range 2 { // while the fault lasts
		got := s.back()
		if o.rests == "" {
			if got.code != 0 {
				t.Errorf("rollback: exit %d\n%s", got.code, got)
			}
			break
		}
		if got.code != 5 || !strings.Contains(got.out, o.says) || !strings.Contains(got.out, o.rests) {
			t.Fatalf("rollback: exit %d, want 5 with %q and %q\n%s%s", got.code, o.says, o.rests, failures(got.out), got.errs)
		}
	}
	if off := s.off(); len(off) > 0 {
		t.Errorf("off after the rollback: %q", off)
	}
	faults.Clear()
	if o.rests == "" {
		s.same("after the rollback", start)
		s.forget()
		if got := s.here(0, s.apply()...); got.code != 0 {
			t.Fatalf("the next run: exit %d\n%s", got.code, got)
		}
	}
	for _, when := range []string{"once the obstacle is gone", "after the next run"} {
		if got := s.back(); got.code != 0 {
			t.Fatalf("%s: rollback: exit %d\n%s", when, got.code, got)
		}
		if diff := cmp.Diff(start, look()); diff != "" {
			t.Fatalf("%s (-start +now):\n%s", when, diff)
		}
		s.forget()
		if when == "after the next run" {
			return
		}
		if got := s.here(0, s.apply()...); got.code != 0 {
			t.Fatalf("the next run: exit %d\n%s", got.code, got)
		}
	}
}

// failures returns the events about failed operations.
func failures(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if !strings.Contains(line, `"event":"progress"`) && !strings.Contains(line, `"event":"started"`) &&
			!strings.Contains(line, `"event":"done"`) {
			b.WriteString(line)
		}
	}
	return b.String()
}
