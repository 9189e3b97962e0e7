package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func fixture(t *testing.T) *vfs.FS {
	t.Helper()
	f := vfs.New(time.Now)
	root := vfs.Root()
	for _, err := range []error{
		f.MkdirAll(root, "/etc/netplan", 0o755),
		f.MkdirAll(root, "/srv/kim", 0o755),
		f.Chown(root, "/srv/kim", 7, 7),
		f.MkdirAll(root, "/secret", 0o700),
		f.WriteFile(root, "/secret/key", []byte("k"), 0o600),
		f.WriteFile(root, "/etc/motd", []byte("hello\n"), 0o644),
		f.Symlink(root, "etc/motd", "/motd"),
		f.Symlink(root, "loop", "/loop"),
		f.Mkdir(root, "/tmp", 0o777),
		f.Chmod(root, "/tmp", 0o777|fs.ModeSticky),
		f.WriteFile(root, "/tmp/roots", nil, 0o644),
		f.Mount("/proc", vfs.Entry{Sub: func() vfs.Tree {
			return vfs.Tree{"sys/kernel/name": {Data: "box\n"}, "self": {Link: "sys"}, "bad": {Err: syscall.EINVAL}}
		}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestRefusals(t *testing.T) {
	kim := vfs.Cred{UID: 7, GIDs: []int{7}}
	read := func(p string) func(*vfs.FS, vfs.Cred) error {
		return func(f *vfs.FS, c vfs.Cred) error { _, err := f.ReadFile(c, p); return err }
	}
	write := func(p string) func(*vfs.FS, vfs.Cred) error {
		return func(f *vfs.FS, c vfs.Cred) error { return f.WriteFile(c, p, []byte("x"), 0o644) }
	}
	for _, tc := range []struct {
		name string
		cred vfs.Cred
		do   func(*vfs.FS, vfs.Cred) error
		want error
	}{
		{"own directory", kim, write("/srv/kim/a"), nil},
		{"directory of another", kim, write("/etc/a"), syscall.EACCES},
		{"file of another", kim, write("/etc/motd"), syscall.EACCES},
		{"readable file of another", kim, read("/etc/motd"), nil},
		{"below a closed directory", kim, read("/secret/key"), syscall.EACCES},
		{"root reads everything", vfs.Root(), read("/secret/key"), nil},
		{"missing", kim, read("/etc/nothing"), syscall.ENOENT},
		{"missing directory", vfs.Root(), write("/no/where"), syscall.ENOENT},
		{"file as directory", kim, read("/etc/motd/x"), syscall.ENOTDIR},
		{"directory as file", vfs.Root(), write("/etc"), syscall.EISDIR},
		{"link that points at itself", kim, read("/loop"), syscall.ELOOP},
		{"computed file is read-only, also for root", vfs.Root(), write("/proc/sys/kernel/name"), syscall.EACCES},
		{"new file in a computed directory", vfs.Root(), write("/proc/sys/new"), syscall.EACCES},
		{"computed file that answers an error", vfs.Root(), read("/proc/bad"), syscall.EINVAL},
		{"sticky directory", kim, func(f *vfs.FS, c vfs.Cred) error { return f.Remove(c, "/tmp/roots") }, syscall.EPERM},
		{"full directory", vfs.Root(), func(f *vfs.FS, c vfs.Cred) error { return f.Remove(c, "/etc") }, syscall.ENOTEMPTY},
		{"mount point", vfs.Root(), func(f *vfs.FS, c vfs.Cred) error { return f.RemoveAll(c, "/proc") }, syscall.EBUSY},
		{"exclusive create of what is there", kim, func(f *vfs.FS, c vfs.Cred) error {
			_, err := f.Open(c, "/etc/motd", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			return err
		}, syscall.EEXIST},
		{"chmod of another's", kim, func(f *vfs.FS, c vfs.Cred) error { return f.Chmod(c, "/etc/motd", 0o777) }, syscall.EPERM},
		{"chown to another", kim, func(f *vfs.FS, c vfs.Cred) error { return f.Chown(c, "/srv/kim", 0, -1) }, syscall.EPERM},
		{"directory into itself", vfs.Root(), func(f *vfs.FS, c vfs.Cred) error { return f.Rename(c, "/etc", "/etc/netplan/etc") },
			syscall.EINVAL},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.do(fixture(t), tc.cred)
			if !errors.Is(err, tc.want) || (tc.want == nil) != (err == nil) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestLinksAndComputedFiles(t *testing.T) {
	f, root := fixture(t), vfs.Root()
	for p, want := range map[string]string{"/motd": "hello\n", "/proc/self/kernel/name": "box\n", "/etc/../etc/./motd": "hello\n",
		"/../motd": "hello\n"} {
		data, err := f.ReadFile(root, p)
		if err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", p, data, err)
		}
	}
	if err := f.WriteFile(root, "/motd", []byte("through the link"), 0o644); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Lstat(root, "/motd"); err != nil || info.Target != "etc/motd" {
		t.Errorf("the link was replaced: %+v, %v", info, err)
	}
	if data, _ := f.ReadFile(root, "/etc/motd"); string(data) != "through the link" {
		t.Errorf("/etc/motd is %q", data)
	}
}

func TestWalkAndRename(t *testing.T) {
	f, root := fixture(t), vfs.Root()
	if err := f.WriteFile(root, "/etc/netplan/a.yaml", []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Rename(root, "/etc/netplan/a.yaml", "/etc/motd"); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := f.Walk(root, "/etc", func(p string, i vfs.Info) error {
		got = append(got, p+" "+i.Mode().String())
		return nil
	})
	want := []string{"/etc drwxr-xr-x", "/etc/motd -rw-------", "/etc/netplan drwxr-xr-x"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestSetsOfComputedFiles(t *testing.T) {
	f := vfs.New(time.Now)
	got := ""
	err := f.Mount("/proc/sys", vfs.Entry{Sub: func() vfs.Tree {
		return vfs.Tree{"flag": {Data: got, Mode: 0o644, Set: func(s string) error {
			if strings.TrimSpace(s) == "bad" {
				return syscall.EINVAL
			}
			got = s
			return nil
		}}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile(vfs.Root(), "/proc/sys/flag", []byte("1\n"), 0); err != nil || got != "1\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := f.WriteFile(vfs.Root(), "/proc/sys/flag", []byte("bad\n"), 0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a bad value gave %v", err)
	}
}

func TestReason(t *testing.T) {
	_, err := fixture(t).ReadFile(vfs.Root(), "/nope")
	if got := vfs.Reason(err); got != "No such file or directory" {
		t.Errorf("got %q", got)
	}
}

// A directory with a version is computed again only if the number changes. A listed directory computes only the requested
// entry.
func TestComputedDirectories(t *testing.T) {
	f := vfs.New(time.Now)
	var version uint64
	names, asked := []string{"eth0"}, map[string]int{}
	err := f.Mount("/sys/net", vfs.Entry{Version: func() uint64 { return version }, Sub: func() vfs.Tree {
		t := vfs.Tree{}
		for _, n := range names {
			t[n] = vfs.Listed([]string{"mtu", "speed", "ecn"}, func(file string) (vfs.Entry, bool) {
				asked[file]++
				return vfs.Entry{Data: file + " of " + n}, file != "ecn"
			})
		}
		return t
	}})
	if err != nil {
		t.Fatal(err)
	}
	list := func(p string) (out []string) {
		infos, err := f.ReadDir(vfs.Root(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range infos {
			out = append(out, i.Name())
		}
		return out
	}
	if b, err := f.ReadFile(vfs.Root(), "/sys/net/eth0/mtu"); err != nil || string(b) != "mtu of eth0" || asked["speed"] != 0 {
		t.Errorf("%q, %v, asked for %v", b, err, asked)
	}
	if _, err := f.Stat(vfs.Root(), "/sys/net/eth0/ecn"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ecn: %v", err)
	}
	if got := list("/sys/net/eth0"); !slices.Equal(got, []string{"mtu", "speed"}) {
		t.Errorf("eth0 has %q", got)
	}
	names = append(names, "eth1")
	if got := list("/sys/net"); !slices.Equal(got, []string{"eth0"}) {
		t.Errorf("without another version: %q", got)
	}
	version++
	if got := list("/sys/net"); !slices.Equal(got, []string{"eth0", "eth1"}) {
		t.Errorf("with another version: %q", got)
	}
	if _, err := f.Stat(vfs.Root(), "/sys/net/eth1/mtu"); err != nil {
		t.Error(err)
	}
}
