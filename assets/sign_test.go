package assets_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestReleaseSignature signs checksums with a key made for the test and verifies them as the documentation says.
func TestReleaseSignature(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no ssh-keygen here")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		testclass.Write(t, filepath.Join(dir, name), text)
	}
	// run runs a command in the directory and returns what it printed.
	run := func(stdin, name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(stdin, name string, args ...string) string {
		t.Helper()
		out, err := run(stdin, name, args...)
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return out
	}
	write("rdma-setup.tar.gz", "an archive\n")
	write("SHA256SUMS", must("", "sha256sum", "rdma-setup.tar.gz"))
	must("", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "release", "-f", "key")
	public := testclass.Read(t, filepath.Join(dir, "key.pub"))
	write("allowed_signers", `release@example.com namespaces="rdma-setup-release" `+string(public))
	script, err := filepath.Abs("dist/sign.sh")
	testclass.OK(t, err)
	must("", script, "key", "SHA256SUMS")

	verify := []string{"-Y", "verify", "-f", "allowed_signers", "-I", "release@example.com", "-n", "rdma-setup-release", "-s",
		"SHA256SUMS.sig"}
	sums := testclass.Read(t, filepath.Join(dir, "SHA256SUMS"))
	if out := must(string(sums), "ssh-keygen", verify...); !strings.Contains(out, "Good") {
		t.Errorf("verify says %q", out)
	}
	if out, err := run("0"+string(sums[1:]), "ssh-keygen", verify...); err == nil {
		t.Errorf("altered checksums were accepted: %s", out)
	}
	if out, err := run("", script, "key", "SHA256SUMS"); err == nil || !strings.Contains(out, "exists already") {
		t.Errorf("signed twice: %v %s", err, out)
	}
	testclass.OK(t, os.Remove(filepath.Join(dir, "SHA256SUMS.sig")))
	write("rdma-setup.tar.gz", "another archive\n")
	if out, err := run("", script, "key", "SHA256SUMS"); err == nil || !strings.Contains(out, "nothing is signed") {
		t.Errorf("signed sums that are wrong: %v %s", err, out)
	}
}
