package cmd_test

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// A command that has ended leaves nothing of its environment in memory: a rehearsal runs several in one process, with all that was
// read of a site.
func TestCommandsThatEndedAreNotKept(t *testing.T) {
	freed := make(chan bool)
	func() {
		site := &bytes.Buffer{}
		runtime.AddCleanup(site, func(freed chan bool) { close(freed) }, freed)
		code := cmd.Run(context.Background(), &console.Env{
			Stdin: strings.NewReader(""), Stdout: site, Stderr: site, Getenv: func(string) string { _ = site.Len(); return "" },
			Terminal: func() bool { return false }, Executable: os.Executable,
		}, []string{"version"})
		if code != 0 {
			t.Fatalf("exit %d\n%s", code, site)
		}
	}()
	for range 100 {
		runtime.GC()
		select {
		case <-freed:
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("its environment is still referred to")
}
