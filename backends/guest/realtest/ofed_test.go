//go:build e2e

package realtest_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledInstaller kills the program while an installer of MLNX_OFED runs in a guest under real sshd, and while the dracut that
// it has started runs. The real installer may not be redistributed; the stand-in uses dpkg as the manual describes.
func TestKilledInstaller(t *testing.T) {
	t.Parallel()
	s := lab(t, "--hosts", "1", "--vms", "1", "--scenario", "sriov-ready")
	s.must(0, "apply", "-f", s.write("lab.yaml", strings.TrimSpace(string(s.read("answers-sriov.yaml")))+unmeasured), "--yes")
	s.boot(1, "sriov", true)
	plain := string(s.read(filepath.Base(s.answersOf("sriov", "ubuntu"))))
	good := s.write("answers-ofed.yaml", strings.Replace(plain, "\nguest:\n", "\nguest:\n  ofed: [/srv/ofed/"+ofedName+".tgz]\n", 1))
	guest := s.guests[0]
	guest.run(standIns)
	bare := s.facts()
	s.killed(good, bare, "mlnxofedinstall", "^/bin/sh ./[m]lnxofedinstall --force")
	s.killed(good, bare, "dracut", "^/bin/sh /usr/local/sbin/[d]racut --force")
	s.scenario("the RAM disk is whole", func(t *testing.T) {
		if got := guest.run("cat /boot/initramfs-test.img; ls -d /var/tmp/dracut.* 2>/dev/null || :"); !strings.HasSuffix(got, "\nwhole") {
			t.Errorf("it is %q", got)
		}
	})
}

const ofedName = "MLNX_OFED_LINUX-24.10-1.1.4.0-debian12.5-x86_64"

// standIns creates, in the guest, the archive of an installer that does what the manual of MLNX_OFED says ("Installing MLNX_OFED",
// return codes, ofed_info, ofed_uninstall.sh), a dracut as dracut(8) describes it, which builds below /var/tmp and copies the image
// over the old one at the end, and empty packages with the names that the installer needs for building.
const standIns = `set -e
package() { # NAME DIR: builds a package from DIR
	mkdir -p "$2/DEBIAN"
	printf 'Package: %s\nVersion: 99\nArchitecture: all\nMaintainer: test <test@example.com>\nDescription: stands in\n' "$1" >"$2/DEBIAN/control"
	dpkg-deb --root-owner-group -b "$2" "/srv/ofed/$1.deb" >/dev/null
}
mkdir -p /srv/ofed/build
cd /srv/ofed/build
for p in autoconf automake autotools-dev bison chrpath debhelper dkms flex gcc gfortran graphviz libltdl-dev linux-headers-$(uname -r) m4 make pkg-config quilt swig tcl tk; do
	mkdir -p "needs/$p"
	package "$p" "needs/$p"
done
dpkg -i /srv/ofed/*.deb >/dev/null
rm /srv/ofed/*.deb
top=` + ofedName + `
mkdir -p "$top" ofed/usr/bin ofed/usr/sbin ofed/etc/infiniband
cat >ofed/usr/bin/ofed_info <<'END'
#!/bin/sh
case $1 in -s) echo MLNX_OFED_LINUX-24.10-1.1.4.0: ;; -n) echo 24.10-1.1.4.0 ;; esac
END
cat >ofed/usr/sbin/ofed_uninstall.sh <<'END'
#!/bin/sh
dpkg --purge ofed-scripts
END
echo ONBOOT=yes >ofed/etc/infiniband/openib.conf
chmod 755 ofed/usr/bin/* ofed/usr/sbin/*
package ofed-scripts ofed
mv /srv/ofed/ofed-scripts.deb "$top/"
cat >"$top/mlnxofedinstall" <<'END'
#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo 'Removing old packages...'
dpkg --purge --force-depends perftest infiniband-diags rdmacm-utils ibverbs-utils rdma-core || exit 1
sleep 5
echo 'Installing new packages'
dpkg -i ofed-scripts.deb || exit 1
printf '* soft memlock unlimited\n* hard memlock unlimited\n' >>/etc/security/limits.conf
sleep 5
dracut --force || exit 1
echo 'Installation passed successfully'
END
cat >/usr/local/sbin/dracut <<'END'
#!/bin/sh
dir=$(mktemp -d /var/tmp/dracut.XXXXXX) || exit 1
echo begun >"$dir/initramfs.img"
sleep 15
echo whole >>"$dir/initramfs.img"
cp "$dir/initramfs.img" /boot/initramfs-test.img
rm -rf "$dir"
END
chmod 755 "$top/mlnxofedinstall" /usr/local/sbin/dracut
printf 'begun\nwhole\n' >/boot/initramfs-test.img
tar czf "/srv/ofed/$top.tgz" "$top"
rm -rf /srv/ofed/build`
