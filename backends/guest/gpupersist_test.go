package guest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// Persistence mode is off in a new guest with NVIDIA's driver. Set switches it on, also after a boot; a restore switches it off
// and removes everything, also after an interrupted attempt. A GPU whose mode was on before keeps it.
func TestGPUPersistence(t *testing.T) {
	testclass.Plain(t)
	for _, os := range []string{"ubuntu-22.04", "rhel-9"} {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os, card: true, driver: true})
			s, to := m.setting(backends.KindGPUPersist, ""), backends.ValueOf(true)
			set := m.Setters()[backends.KindGPUPersist]
			k, _ := backends.As[backends.Keeper](set)
			reads := func(want backends.Value) {
				t.Helper()
				now, err := set.Read(t.Context(), s)
				seen := m.Survey(t.Context(), m.vm)
				read := seen.GPUUnit.Persistence(seen.NVIDIA.Devices)
				if err != nil || now != want || read != want {
					t.Fatalf("reads %s, the survey %s: %v; want %s", now, read, err, want)
				}
			}
			listing := func() string {
				return m.listing(t) + m.root(t, "ls /etc/systemd/system /etc/systemd/system/multi-user.target.wants; systemctl is-active "+
					"nvidia-persistenced; nvidia-smi -q | grep Persist")
			}
			m.root(t,
				"cd /etc/systemd/system && rm -f nvidia-persistence-mode.service multi-user.target.wants/nvidia-persistence-mode.service && "+
					"nvidia-smi -pm 0")
			reads(backends.Absent)
			before := listing()
			kept, err := k.Keep(t.Context(), s, to)
			testclass.OK(t, err)

			m.fault(t, "command=nvidia-smi -pm,do=fail:Unable to set persistence mode")
			if err := set.Set(t.Context(), s, to, nil); err == nil || !strings.Contains(err.Error(), "keep GPUs initialized") {
				t.Fatalf("with a driver that refuses: %v", err)
			}
			reads(backends.Partial(nil))
			m.world.Faults.Clear()
			testclass.OK(t, set.Set(t.Context(), s, to, nil))
			reads(to)
			m.reboot(t)
			reads(to)

			testclass.OK(t, k.Restore(t.Context(), s, kept, nil))
			if d := cmp.Diff(before, listing()); d != "" {
				t.Errorf("left (-before +after):\n%s", d)
			}
			reads(backends.Absent)
			testclass.OK(t, set.Set(t.Context(), s, to, nil))
			testclass.OK(t, set.Set(t.Context(), s, backends.Absent, nil))
			reads(backends.Absent)

			m.root(t, "nvidia-smi -i 0 -pm 1") // by hand, of one GPU
			if kept, err = k.Keep(t.Context(), s, to); err != nil {
				t.Fatal(err)
			}
			before = listing()
			testclass.OK(t, set.Set(t.Context(), s, to, nil))
			testclass.OK(t, k.Restore(t.Context(), s, kept, nil))
			if d := cmp.Diff(before, listing()); d != "" {
				t.Errorf("one GPU was on (-before +after):\n%s", d)
			}
		})
	}
}
