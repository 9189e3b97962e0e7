package cmd_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// TestNoSecretIsLeftAnywhere performs a run with a log at debug level, an empty resume, checks, reports and a rollback. It searches
// for every secret in all output, in every file that was written and in the arguments of every program that ran in a guest or on a
// host. The files are readable by their owner only.
func TestNoSecretIsLeftAnywhere(t *testing.T) {
	t.Parallel()
	const user, password = "ops@vsphere.local", "unique-vcenter-7Yq"
	l, err := lab.Start(t.Context(), lab.Options{
		Hosts: 2, VMs: 2, Dir: t.TempDir(), Faults: []string{"host=esx-02,method=EnableRuleset,nth=1,do=fault:NoPermission"},
		Secrets:  world.Secrets{ESXi: "unique-esxi-3Kd", Guest: "unique-guest-8Wm", Sudo: "unique-sudo-5Rt"},
		Accounts: []vcenter.Account{{Name: user, Password: password}},
	})
	testclass.OK(t, err)
	closeAtEnd(t, l)
	state := t.TempDir()
	env := environment(l, state)
	env["GOVC_USERNAME"], env["GOVC_PASSWORD"] = user, password
	key := testclass.Read(t, env["RDMA_SETUP_SSH_KEY"])
	secrets := map[string]string{"the private key": strings.Split(string(key), "\n")[2]}
	for _, name := range []string{"GOVC_PASSWORD", "RDMA_SETUP_ESXI_PASSWORD", "RDMA_SETUP_GUEST_PASSWORD", "RDMA_SETUP_SUDO_PASSWORD"} {
		secrets[name] = env[name]
	}
	for name, secret := range secrets {
		for other, same := range secrets {
			if name != other && strings.Contains(secret, same) {
				t.Errorf("%s is part of %s: nobody could tell which one was found", other, name)
			}
		}
	}
	const wrong = "wrong-9Qz!"
	secrets["a wrong password"] = wrong
	look := func(where, text string) {
		for name, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %s", where, name)
			}
		}
	}
	answers := filepath.Join(l.Dir(), "answers-pvrdma.yaml")
	for _, c := range []struct {
		words []string
		exit  int
	}{
		{[]string{"apply", "-f", answers, "--yes", "--log-level", "debug", "-v", "--trace", filepath.Join(state, "apply.trace")}, 5},
		{[]string{"resume", "--yes", "--log-level", "debug", "-o", "json"}, 0},
		{[]string{"plan", "-f", answers, "-o", "json"}, 0},
		{[]string{"check", "-f", answers, "-o", "json", "-v", "--trace", filepath.Join(state, "check.trace")}, 0},
		{[]string{"collect", "-f", answers, "--out", filepath.Join(state, "bundle.tgz")}, 0},
		{[]string{"check", "--bundle", filepath.Join(state, "bundle.tgz"), "-o", "json"}, 0},
		{[]string{"report", "-o", "html"}, 0},
		{[]string{"rollback", "--yes"}, 0},
		{[]string{"discover", "--password-file", "/dev/null"}, 4}, // not the password of the environment
	} {
		out, errs, code := inProcess(env, c.words...)
		if code != c.exit {
			t.Errorf("%v: exit %d, want %d\n%s", c.words, code, c.exit, errs)
		}
		look(strings.Join(c.words, " "), out+errs)
	}
	given := maps.Clone(env)
	given["GOVC_PASSWORD"] = "stale-password" // flags win
	for _, c := range []struct {
		flag, password string
		exit           int
	}{
		{"file", env["GOVC_PASSWORD"], 0}, {"file", wrong, 4}, {"stdin", env["GOVC_PASSWORD"], 0}, {"stdin", wrong, 4},
	} {
		words, in := []string{"discover", "--password-stdin", "--log-level", "debug", "-v"}, c.password+"\n"
		if c.flag == "file" {
			in, words[1] = "", "--password-file="+filepath.Join(t.TempDir(), "password")
			testclass.Write(t, strings.TrimPrefix(words[1], "--password-file="), c.password+"\n")
		}
		out, errs, code := inProcessWith(given, in, words...)
		if code != c.exit {
			t.Errorf("%v: exit %d, want %d\n%s", words, code, c.exit, errs)
		}
		look(strings.Join(words, " "), out+errs)
	}
	files := 0
	if err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(state, path)
		if open := info.Mode().Perm() & 0o077; open != 0 && rel != "." {
			t.Errorf("%s has mode %v", rel, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		files++
		b, err := os.ReadFile(path)
		if err == nil && filepath.Ext(path) == ".tgz" {
			b, err = unzipped(b)
		}
		look(rel, string(b))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	processes := 0
	for _, e := range l.World().Log.Events() {
		if e.What == world.Process {
			processes++
			look(e.VM+e.Host+": "+e.Detail, e.Detail)
		}
	}
	trace, err := os.ReadFile(filepath.Join(state, "apply.trace"))
	if lines := strings.Count(string(trace), `"event":"call"`); err != nil || lines < 100 ||
		!strings.Contains(string(trace), "password=(left out)") {
		t.Errorf("the trace of apply has %d calls, %v", lines, err)
	}
	if files < 9 || processes < 50 {
		t.Errorf("only %d files and %d processes were looked at", files, processes)
	}
}

// TestFilesTakeThePlaceOfLinks writes to names that another user has replaced by links: the targets of the links stay unchanged.
func TestFilesTakeThePlaceOfLinks(t *testing.T) {
	t.Parallel()
	l := openLab(t, lab.Options{Hosts: 1, VMs: 1, Dir: t.TempDir()})
	dir := t.TempDir()
	env := environment(l, dir)
	victim := filepath.Join(dir, "victim")
	testclass.OK(t, os.WriteFile(victim, []byte("whole"), 0o644))
	answers := filepath.Join(l.Dir(), "answers-pvrdma.yaml")
	for name, words := range map[string][]string{
		"plan.json":  {"plan", "-f", answers},
		"bundle.tgz": {"collect", "-f", answers},
		"check.html": {"check", "-f", answers, "-o", "html"},
	} {
		path := filepath.Join(dir, name)
		testclass.OK(t, os.Symlink(victim, path))
		_, errs, _ := inProcess(env, append(words, "--out", path)...)
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() < 100 {
			t.Errorf("%s: %v, %v\n%s", name, info, err, errs)
		}
	}
	if _, errs, code := inProcess(env, "plan", "-f", answers, "--out", "/dev/stdout"); code != 2 || !strings.Contains(errs, "is not a file") {
		t.Errorf("--out /dev/stdout: exit %d\n%s", code, errs)
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "whole" {
		t.Errorf("the file behind the links has %d bytes, %v", len(b), err)
	}
}

// TestChildrenGetNoSecrets runs the lab, which this program starts, as a script that prints its environment.
func TestChildrenGetNoSecrets(t *testing.T) {
	dir := t.TempDir()
	told := filepath.Join(dir, "environment")
	script := "#!/bin/sh\n{ echo from lab; env; } >>" + told + "\nexit 1\n"
	testclass.OK(t, os.WriteFile(filepath.Join(dir, "lab"), []byte(script), 0o700))
	t.Setenv("HARMLESS", "harmless-5mVx")
	for _, name := range []string{"GOVC_PASSWORD", "RDMA_SETUP_PASSWORD", "RDMA_SETUP_ESXI_PASSWORD", "RDMA_SETUP_GUEST_PASSWORD",
		"RDMA_SETUP_SUDO_PASSWORD"} {
		t.Setenv(name, "secret-7Kp2")
	}
	env := map[string]string{"HOME": dir, "XDG_STATE_HOME": dir, "XDG_CONFIG_HOME": dir}
	var out bytes.Buffer
	cmd.Run(t.Context(), &console.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(key string) string { return env[key] }, Now: time.Now,
		Terminal:   func() bool { return false },
		Executable: func() (string, error) { return filepath.Join(dir, "lab"), nil },
		Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
	}, []string{"discover", "--lab"})
	text, err := os.ReadFile(told)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, word := range []string{"from lab", "HARMLESS=harmless-5mVx"} {
		if !strings.Contains(string(text), word) {
			t.Errorf("nobody told %q:\n%s", word, out.String())
		}
	}
	if strings.Contains(string(text), "secret-7Kp2") {
		t.Errorf("a child got a password:\n%s", text)
	}
}

func unzipped(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
