package realtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// Kept returns a directory of the given kind that was built from sources, such as the images of guests; it stays in the user's cache
// directory. It is built once for each content of the sources: build gets the path of a directory that does not exist, in a
// directory where it may leave other files. Directories built from other contents are removed, including those of an interrupted
// build: two different checkouts cannot run at the same time.
func Kept(t testing.TB, kind string, sources fs.FS, build func(dir string)) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "rdma-setup-e2e", kind)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	alone := flock.New(filepath.Join(cache, "lock"))
	if _, err := alone.TryLockContext(t.Context(), 100*time.Millisecond); err != nil {
		t.Fatalf("another run builds the %s: %v", kind, err)
	}
	defer alone.Unlock()
	dir := filepath.Join(cache, digest(t, sources))
	prune(t, cache, dir)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	started := time.Now()
	work, err := os.MkdirTemp(cache, "building-")
	if err != nil {
		t.Fatal(err)
	}
	defer remove(t, work)
	built := filepath.Join(work, kind)
	build(built)
	if err := os.Rename(built, dir); err != nil {
		if out, err := AsRoot(t.Context(), "mv", "-T", built, dir); err != nil { // root must move a directory that belongs to root
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Logf("%s was built in %s", dir, time.Since(started).Round(time.Second))
	return dir
}

func prune(t testing.TB, cache, keep string) {
	t.Helper()
	old, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range old {
		if dir := filepath.Join(cache, e.Name()); e.IsDir() && dir != keep {
			remove(t, dir)
		}
	}
}

// remove removes a directory that may belong to root.
func remove(t testing.TB, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err == nil {
		return
	}
	if out, err := AsRoot(context.WithoutCancel(t.Context()), "rm", "-rf", "--one-file-system", dir); err != nil {
		t.Logf("%s stays: %v\n%s", dir, err, out)
	}
}

func digest(t testing.TB, sources fs.FS) string {
	t.Helper()
	sum := sha256.New()
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := sources.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(sum, "%s\x00", path)
		_, err = io.Copy(sum, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// AsRoot runs a command as root, for 20 minutes at most, and returns its output. At the limit it is first interrupted, so that
// it can clean up.
func AsRoot(ctx context.Context, command ...string) (string, error) {
	if os.Getuid() != 0 {
		command = append([]string{"sudo", "-n"}, command...)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return string(out), nil
}
