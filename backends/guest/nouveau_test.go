package guest_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// bootImage matches dracut's image in a listing; its bytes differ each time.
var bootImage = regexp.MustCompile(`(?m)^/boot/initramfs-\S+\.img .*\n`)

// nouveau is loaded at boot. Set ends with a guest that has rebooted without it, also at the boots after that; a restore takes
// everything away to the byte, also one that a full /boot has broken off, and then nouveau is back at the next boot.
func TestNouveau(t *testing.T) {
	testclass.Plain(t)
	renews := map[string]string{"ubuntu-22.04": "update-initramfs", "debian-12": "update-initramfs", "rhel-9": "dracut", "centos-7": "dracut"}
	for os, renew := range renews {
		t.Run(os, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, config{os: os, nouveau: true})
			s, to := m.setting(backends.KindNouveau, ""), backends.ValueOf(true)
			set := m.Setters()[backends.KindNouveau]
			k, _ := backends.As[backends.Keeper](set)
			reads := func(want backends.Value, loaded bool) {
				t.Helper()
				now, err := set.Read(t.Context(), s)
				seen := m.Survey(t.Context(), m.vm).Nouveau
				if err != nil || now != want || seen.Value() != want || (seen != nil && seen.Loaded) != loaded {
					t.Fatalf("reads %s, %+v: %v; want %s, loaded %t", now, seen, err, want, loaded)
				}
			}
			listing := func() string {
				return bootImage.ReplaceAllString(m.listing(t), "") +
					m.root(t, "ls /boot /etc/dracut.conf.d; { lsinitramfs /boot/initrd.img-* || lsinitrd; } 2>/dev/null | grep nouveau || :")
			}
			reads(backends.Absent, true)
			before := listing()
			kept, err := k.Keep(t.Context(), s, to)
			testclass.OK(t, err)

			// What is not in the initial RAM disk keeps nothing out: the file alone is not taken for done.
			m.fault(t, "command="+renew+",do=fail:"+renew+": failed: No space left on device")
			if err := set.Set(t.Context(), s, to, nil); err == nil || !strings.Contains(err.Error(), "No space left") {
				t.Fatalf("with a full /boot: %v", err)
			}
			reads(backends.Partial(nil), true)
			m.reboot(t)
			reads(backends.Partial(nil), true)
			m.world.Faults.Clear()

			boot, _ := m.BootID(t.Context(), m.vm)
			testclass.OK(t, set.Set(t.Context(), s, to, nil))
			reads(to, false)
			again, _ := m.BootID(t.Context(), m.vm)
			if again == boot {
				t.Error("the guest was not rebooted")
			}
			testclass.OK(t, set.Set(t.Context(), s, to, nil))
			if now, _ := m.BootID(t.Context(), m.vm); now != again {
				t.Error("set again it is rebooted again")
			}

			m.fault(t, "command="+renew+",do=fail:"+renew+": failed: No space left on device")
			if err := k.Restore(t.Context(), s, kept, nil); err == nil || len(m.differs(t, backends.Assignment{Setting: s, To: to}, kept)) == 0 {
				t.Errorf("restored with a full /boot: %v", err)
			}
			m.world.Faults.Clear()
			testclass.OK(t, k.Restore(t.Context(), s, kept, nil))
			if d := cmp.Diff(before, listing()); d != "" {
				t.Errorf("left (-before +after):\n%s", d)
			}
			m.reboot(t)
			reads(backends.Absent, true)
		})
	}
}
