package backends_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

func TestPermissionsOfInputs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	testclass.OK(t, os.WriteFile(path, []byte("secret\n"), 0o600))
	for _, tt := range []struct {
		in   backends.Input
		mode os.FileMode
		hint string
	}{
		{backends.InputPassword, 0o600, ""},
		{backends.InputPassword, 0o400, ""},
		{backends.InputPassword, 0o644, "Run: chmod 600 " + path},
		{backends.InputKey, 0o640, "Run: chmod 600 " + path},
		{backends.InputSettings, 0o644, ""},
		{backends.InputSettings, 0o666, "Run: chmod go-w " + path},
		{backends.InputSSHConfig, 0o602, "Run: chmod go-w " + path},
		{backends.InputAnswers, 0o666, ""},
	} {
		testclass.OK(t, os.Chmod(path, tt.mode))
		_, err := tt.in.ReadFile(path)
		if (err == nil) != (tt.hint == "") || backends.HintOf(err) != tt.hint || err != nil && backends.KindOf(err) != backends.KindUsage {
			t.Errorf("%s of mode %#o: %v (hint %q)", tt.in.Name, tt.mode, err, backends.HintOf(err))
		}
	}
}

// TestInputFromPipes reads the output of a process substitution, and does not wait forever if nobody writes.
func TestInputFromPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	testclass.OK(t, syscall.Mkfifo(path, 0o644))
	written := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("secret\n")
			err = errors.Join(err, f.Close())
		}
		written <- err
	}()
	b, err := backends.InputPassword.ReadFile(path)
	if werr := <-written; string(b) != "secret\n" || err != nil || werr != nil {
		t.Errorf("%q, %v, %v", b, err, werr)
	}
	if _, err := backends.InputAnswers.ReadFile(t.TempDir()); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
}

// TestInputOfASlowCommand is --password-file <(command): the command may take its time, and may write nothing at all.
func TestInputOfASlowCommand(t *testing.T) {
	for _, text := range []string{"secret\n", ""} {
		r, w, err := os.Pipe()
		testclass.OK(t, err)
		t.Cleanup(func() { r.Close() })
		path := fmt.Sprintf("/dev/fd/%d", r.Fd())
		type answer struct {
			text string
			err  error
		}
		read := make(chan answer, 1)
		begun := time.Now()
		go func() {
			b, err := backends.InputPassword.ReadFile(path)
			read <- answer{string(b), err}
		}()
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if got := <-read; got.text != text || got.err != nil || time.Since(begun) > 5*time.Second {
			t.Errorf("%q, %v after %s; want %q at once", got.text, got.err, time.Since(begun), text)
		}
	}
}

// TestInputsAreDocumented compares the table of the security document with the limits.
func TestInputsAreDocumented(t *testing.T) {
	text := testclass.Read(t, "../assets/docs/security.md")
	for _, in := range []backends.Input{
		backends.InputPassword, backends.InputKey, backends.InputPublicKey, backends.InputSettings, backends.InputSSHConfig,
		backends.InputKnownHosts,
		backends.InputCA, backends.InputAnswers, backends.InputProperty, backends.InputPlan, backends.InputBaseline, backends.InputDaemon,
		backends.InputState,
	} {
		if row := "| " + in.Name + " | " + backends.SizeText(in.Limit) + " |"; !strings.Contains(string(text), row) {
			t.Errorf("assets/docs/security.md lacks the row %s", row)
		}
	}
	inventory, plan := backends.InventoryJSON, backends.PlanJSON
	for _, row := range []string{
		fmt.Sprintf("| lists in a bundle or baseline | %d rows at the top %d objects %d values in each file |", inventory.Rows, inventory.Objects,
			inventory.Values),
		fmt.Sprintf("| lists in a plan | %d changes %d objects %d values |", plan.Rows, plan.Objects, plan.Values),
	} {
		if !strings.Contains(strings.ReplaceAll(string(text), ",", ""), row) {
			t.Errorf("assets/docs/security.md lacks the row %s", row)
		}
	}
}

func TestJSONLimit(t *testing.T) {
	l := backends.JSONLimit{Rows: 3, Objects: 6, Values: 12}
	for text, fits := range map[string]bool{
		`{"a":[1,2,3]}`: true, `{"a":[1,2,3,4]}`: false, `[{},{},{}]`: true, `[{},{},{},{}]`: false, `{"a":"[,{,[,{,[,","b":"\"{{{{{{{"}`: true,
		`{"a":[[[[[[[`: false, `[null,null,null,`: false, `{"a":{"b":{"c":{"d":[1,2,3,4,5,6,7,8,9,10]}}}}`: false, ``: true, `"\`: true,
		`]]]`: true,
	} {
		if err := l.Check([]byte(text)); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestGroupOfTheOwnerMayWrite: Debian's and Ubuntu's umask of 0002 makes files that the private group of their owner may write.
func TestGroupOfTheOwnerMayWrite(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can give a file to another group: the group of this user is tried alone")
	}
	path := filepath.Join(t.TempDir(), "config")
	testclass.OK(t, os.WriteFile(path, nil, 0o600))
	testclass.OK(t, os.Chmod(path, 0o664))
	if os.Getuid() != 0 {
		return
	}
	if _, err := backends.InputSSHConfig.ReadFile(path); err != nil { // group root contains only root
		t.Errorf("the group of its owner: %v", err)
	}
	if err := os.Chown(path, 0, 65534); err != nil { // nogroup is the group of nobody
		t.Fatal(err)
	}
	if _, err := backends.InputSSHConfig.ReadFile(path); backends.KindOf(err) != backends.KindUsage {
		t.Errorf("a group of others: %v", err)
	}
}
