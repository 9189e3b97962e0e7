package shell_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// The state after SIGKILL terminates a command at one of its steps. For dpkg it was observed with dpkg 1.21 of Debian 12; file
// names are those of mkinitramfs(8) 0.142 and of dracut.sh.
func TestKilledAtAStep(t *testing.T) {
	for _, tt := range []struct{ name, system, fault, command, look, want string }{
		{"dpkg while it unpacks", "ubuntu-22.04", "command=dpkg --status-fd 9 --no-triggers --unpack,do=kill:1",
			"apt-get update; apt-get install -y dkms",
			`ls /usr/sbin | grep dkms; dpkg-query -W -f '${db:Status-Abbrev}|${Status}\n' | grep '^iH'; apt-get install -y tree 2>&1 | tail -n 1; dpkg --configure -a; dpkg --audit | head -n 1`,
			"dkms.dpkg-new|iHR|install reinstreq half-installed|E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct " +
				"the problem. |The following packages are in a mess"},
		{"dpkg after it has unpacked, before its database is complete", "ubuntu-22.04",
			"command=dpkg --status-fd 9 --no-triggers --unpack,nth=1,do=kill:2", "apt-get update; apt-get install -y dkms",
			`dpkg-query -W -f '${db:Status-Abbrev}|${Status}\n' | grep '^iU'; dpkg --audit | head -n 1; dpkg --configure -a 2>&1; apt-get install -y rdma-core 2>&1 | tail -n 1; ` +
				`apt-get install -y --reinstall dkms >/dev/null 2>&1; dpkg --audit; dpkg-query -W -f '${Status}\n' dkms`,
			"iUR|install reinstreq unpacked|The following packages are in a mess|error processing package dkms (--configure):\n package is in a " +
				"very bad inconsistent state; you should\n" +
				" reinstall it before attempting configuration|Errors were encountered while processing:\n dkms|E: Sub-process /usr/bin/dpkg " +
				"returned an error code (1)|install ok installed"},
		{"dpkg while it configures", "ubuntu-22.04", "command=dpkg --status-fd 9 --configure,do=kill:1",
			"apt-get update; apt-get install -y rdma-core",
			`dpkg-query -W -f '${db:Status-Abbrev}|${Status}\n' | grep '^iF'; dpkg --configure -a >/dev/null; dpkg-query -W -f '${Status}\n' rdma-core`,
			"iF |install ok half-configured|install ok installed"},
		{"update-initramfs while it copies", "ubuntu-22.04", "command=update-initramfs,do=kill:1", "update-initramfs -u", "ls /boot /var/tmp",
			"initrd.img-5.15.0-112-generic.new|mkinitramfs-OL_|mkinitramfs_"},
		{"dracut while it copies", "rhel-9", "command=dracut,do=kill:3", "dracut -f", "cat /boot/initramfs-*.img; ls /var/tmp", "init|dracut."},
		{"systemctl before it has done anything", "ubuntu-22.04", "command=systemctl mask,do=kill:1", "systemctl mask x.service",
			"ls -l /etc/systemd/system | grep -c x.service", "0"},
		{"systemctl after it has done all", "ubuntu-22.04", "command=systemctl mask,do=kill:2", "systemctl mask x.service",
			"ls -l /etc/systemd/system | grep -c x.service", "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := start(t, scenario.Spec{Hosts: 1, VMs: 1, Systems: []string{tt.system}, Faults: []string{tt.fault}})
			user := "ubuntu"
			l.world.View(func(s *world.State) { user = s.VM("vm-01").Guest.User })
			c := l.dial("vm-01", user)
			if got := run(t, c, "sudo -n bash -c '"+tt.command+"'", ""); got.status == 0 {
				t.Errorf("it was not killed: %+v", got)
			}
			got := run(t, c, "sudo -n bash -c '"+strings.ReplaceAll(tt.look, "'", `'\''`)+"'", "")
			rest := got.out + got.err
			for _, want := range strings.Split(tt.want, "|") {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q is missing in\n%s", want, got.out+got.err)
				}
				rest = after
			}
		})
	}
}

// While a package manager is running, another one is refused. The lock is released when the process ends.
func TestPackageManagersTakeTurns(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1, Systems: []string{"ubuntu-22.04"},
		Timing: world.Timing{Commands: timing.Clock{Real: true, Scale: 100}}})
	c := l.dial("vm-01", "ubuntu")
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("sudo -n apt-get install -y rdma-core"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "apt-get runs", func() bool { return len(l.world.Running()) > 0 })
	eventually(t, "another one is refused", func() bool {
		got := run(t, c, "sudo -n dpkg --configure -a", "")
		return got.status == 2 && strings.Contains(got.err, "dpkg frontend lock was locked by another process with pid")
	})
	run(t, c, "sudo -n pkill -9 apt-get", "")
	eventually(t, "the lock has gone", func() bool { return run(t, c, "sudo -n dpkg --configure -a", "").status == 0 })
}
