//go:build e2e

package realtest_test

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
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

//go:embed all:image needs.sh
var sources embed.FS

// guestImage gives the directory with root.ext4, vmlinux and initrd: built once for each content of image/, then kept
// in the user's cache.
func guestImage(ctx context.Context, t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "rdma-setup-e2e")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	alone := flock.New(filepath.Join(cache, "lock"))
	if _, err := alone.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		t.Fatalf("another run builds the image: %v", err)
	}
	defer alone.Unlock()
	name := contentHash(t)
	dir := filepath.Join(cache, name)
	prune(t, cache, name)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	started := time.Now()
	work, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	build(ctx, t, "./needs.sh", "latest")
	build(ctx, t, "./image/build.sh", work)
	if err := os.Rename(work, dir); err != nil {
		t.Fatal(err)
	}
	t.Logf("the image %s was built in %s", dir, time.Since(started).Round(time.Second))
	return dir
}

// prune removes images of other contents and what a build that was killed has left. Guests of an older checkout that
// run meanwhile keep the files that they have opened.
func prune(t *testing.T, cache, name string) {
	t.Helper()
	for _, pattern := range []string{"build-*", strings.Repeat("[0-9a-f]", 16)} {
		old, err := filepath.Glob(filepath.Join(cache, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range old {
			if filepath.Base(dir) == name {
				continue
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Logf("an old image stays: %v", err)
			}
		}
	}
}

func build(ctx context.Context, t *testing.T, command ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		command = append([]string{"sudo", "-n"}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it has a directory to remove
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

func contentHash(t *testing.T) string {
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
		io.WriteString(sum, path+"\x00")
		_, err = io.Copy(sum, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
