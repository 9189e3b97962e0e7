package ssh_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func writeFile(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	testclass.Write(t, path, text)
	testclass.OK(t, os.Chmod(path, mode))
	return path
}

// TestSSHConfigIsLimited reads ssh_config files that never end, or that others may write to.
func TestSSHConfigIsLimited(t *testing.T) {
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	writeFile(t, loop, "Include "+loop+"\n", 0o600)
	open := writeFile(t, filepath.Join(dir, "open"), "Host x\n", 0o666)
	outer := writeFile(t, filepath.Join(dir, "outer"), "Include "+open+"\n", 0o600)
	block := writeFile(t, filepath.Join(dir, "block"), "Host x\n  Include "+open+"\n", 0o600)
	syntax := writeFile(t, filepath.Join(dir, "syntax"), "Host x\n  Include /none\nMatch\n", 0o600)
	many := writeFile(t, filepath.Join(dir, "many"), strings.Repeat("Include /none\n", 1001), 0o600)
	for name, hint := range map[string]string{many: "Correct the file, or ", loop: "Correct the file, or ", "/dev/zero": "",
		open: "Run: chmod go-w " + open, outer: "Run: chmod go-w " + open, block: "Run: chmod go-w " + open, syntax: "Correct the file, or "} {
		_, err := ssh.NewPool(ssh.Config{SSHConfig: []string{name}})
		if backends.KindOf(err) != backends.KindUsage || !strings.HasPrefix(backends.HintOf(err), hint) {
			t.Errorf("%s: %v, hint %q", name, err, backends.HintOf(err))
		}
	}
}

// TestMatchBlocksThatAreNotSupported: they are ignored with a warning, in included files too; lines before and after them and in other
// files apply, those of files that a block includes to its hosts alone.
func TestMatchBlocksThatAreNotSupported(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s := startServer(t, nil)
	c := trusting(t, s)
	host, port, _ := strings.Cut(s.addr, ":")
	writeFile(t, at("good"), "Match exec true\n  Port 1\nMatch host root user vm-01\n  Port 2\nHost vm-01\n  Port "+port+"\n", 0o600)
	writeFile(t, at("other"), "Port 3\nHost vm-01\n  HostName 192.0.2.5\n", 0o600)
	writeFile(t, at("50-redhat.conf"), "Match final all\n  HostName 192.0.2.3\nHost vm-01\n  HostName "+host+"\n", 0o600)
	c.SSHConfig = []string{writeFile(t, at("config"),
		"Host vm-02\n  Include "+at("other")+" # vm-02\n  Port 4\nHost *\n  Include "+at("*.conf")+"\n"+
			"Match exec \"test -e /vpn\"\n  HostName 192.0.2.1\n  Include /dev/zero\n"+
			"Match host vm-01 user root\n  HostName 192.0.2.2\nHost *\n  Include "+at("good")+"\nMatch host vm-01\n  HostName 192.0.2.4\n", 0o600)}
	var warned []string
	c.Warn = func(line string) { warned = append(warned, line) }
	target := s.target("vm-01")
	target.Host, target.Port = "vm-01", 0
	conn, err := newPool(t, c).Dial(t.Context(), target)
	testclass.OK(t, err)
	conn.Close()
	if got := strings.Join(warned, "\n"); len(warned) != 5 || !strings.Contains(got, `"Match final all"`) ||
		!strings.Contains(got, `the block "Match exec \"test -e /vpn\"" is ignored`) ||
		!strings.Contains(got, `"Match host vm-01 user root"`) || !strings.Contains(got, at("good")+`": the block "Match exec true" is`) {
		t.Errorf("warnings:\n%s", got)
	}
}

// TestKnownHostsIsLimited reads a known_hosts file without end, and an empty one.
func TestKnownHostsIsLimited(t *testing.T) {
	s := startServer(t, nil)
	c := trusting(t, s)
	c.KnownHosts = []string{"/dev/zero"}
	if _, err := newPool(t, c).Dial(t.Context(), s.target("vm-01")); backends.KindOf(err) != backends.KindUsage {
		t.Errorf("/dev/zero: %v", err)
	}
	c.KnownHosts = []string{os.DevNull}
	if _, err := newPool(t, c).Dial(t.Context(), s.target("vm-01")); backends.KindOf(err) != backends.KindAuth {
		t.Errorf("/dev/null: %v", err)
	}
}

// TestOpenKeyIsIgnored uses a private key that others may read: ssh(1) ignores such keys, and so does this program.
func TestOpenKeyIsIgnored(t *testing.T) {
	signer, priv := newKey(t)
	s := startServer(t, func(s *server) { s.key = signer.PublicKey(); s.password = "" })
	c := trusting(t, s)
	c.Password = nil
	c.Keys = []string{writeKey(t, priv, "")}
	testclass.OK(t, os.Chmod(c.Keys[0], 0o640))
	_, err := newPool(t, c).Dial(t.Context(), s.target("vm-01"))
	if backends.KindOf(err) != backends.KindAuth || !strings.Contains(err.Error(), "ignored: permissions 0640") {
		t.Errorf("%v", err)
	}
	c.Keys = []string{"/dev/zero"}
	if _, err = newPool(t, c).Dial(t.Context(), s.target("vm-01")); err == nil ||
		!strings.Contains(err.Error(), "limit for a private key is 1 MiB") {
		t.Errorf("/dev/zero: %v", err)
	}
}
