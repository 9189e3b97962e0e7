package guest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// perftest before July 2026 does not compile with CUDA 13 (recorded with perftest 24.01 and 25.01, CUDA 13.0).
func TestPerftestIsTooOldForCUDA(t *testing.T) {
	err := buildError("vm-01", backends.BuildPerftest, "/mnt/share/perftest-25.01.0.tar.gz", ssh.Result{ExitCode: 1,
		Stderr: "   82 |         error = cuCtxCreate(&ctx->cuContext, CU_CTX_MAP_HOST, ctx->cuDevice);\nmake[1]: *** [Makefile:933: " +
			"src/cuda_memory.o] Error 1\nmake: *** [Makefile:641: all] Error 2\n"})
	if hint := backends.HintOf(err); !strings.Contains(hint, "CUDA 13") || !strings.Contains(hint, "install CUDA 12") {
		t.Errorf("hint %q of %v", hint, err)
	}
}

// The script itself, with a make that installs or refuses and a curl that loads or breaks off: it says why nothing was built, and what it
// worked with is gone, also what a build before it left.
func TestBuildPerftestScript(t *testing.T) {
	t.Parallel()
	const url = "https://mirror.example/perftest.tar.gz"
	source := t.TempDir()
	write(t, source, map[string]string{"perftest-24.10/configure": `for o; do case $o in --prefix=*) echo "${o#*=}" >prefix ;; esac; done`,
		"perftest-24.10/Makefile": ""})
	archive := filepath.Join(t.TempDir(), "a share", "perftest.tar.gz")
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("tar", "-C", source, "-czf", archive, "--mode=755", "perftest-24.10").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	const (
		install = `case $* in *install) p=$(cat prefix); mkdir -p "$p/bin" && printf '#!/bin/sh\necho "Version: 6.24"\n' >"$p/bin/ib_send_bw" && chmod 755 "$p/bin/ib_send_bw" ;; esac`
		loads   = `while [ $# -gt 1 ]; do [ "$1" = -o ] && to=$2; case $1 in =https) secure=1 ;; esac; shift; done; [ -n "$secure" ] && cp "$ARCHIVE" "$to"`
	)
	for name, c := range map[string]struct{ source, curl, make, says string }{
		"a path with a space":    {archive, "", install, ""},
		"a URL":                  {url, loads, install, ""},
		"a URL with its SHA-256": {url + "#sha256=" + sum, loads, install, ""},
		"another SHA-256":        {url + "#sha256=" + strings.Repeat("0", 64), loads, install, "the SHA-256 of " + url + " is not 000"},
		"half of it is loaded": {url, `echo half >"$5"; echo 'curl: (18) transfer closed' >&2; exit 18`, install,
			"cannot download " + url + ": curl: (18) transfer closed"},
		"/opt is read-only": {archive, "",
			`case $* in *install) echo "mkdir: cannot create directory '/opt': Read-only file system"; echo lots; exit 1 ;; esac`,
			"Read-only file system"},
		"what is built says none": {archive, "", "exit 0", "reports no version"},
	} {
		dir := t.TempDir()
		built, prefix := filepath.Join(dir, "built"), filepath.Join(dir, "opt", "perftest-same")
		write(t, dir, map[string]string{"bin/make": c.make, "bin/nproc": "echo 1", "bin/curl": c.curl, "built/perftest-same.AbCdEf/src/old": "",
			"built/perftest": "done /other"})
		cmd := exec.Command("/bin/sh", "-c", assets.Script("build-perftest.sh"), "sh", c.source, prefix, built, "")
		cmd.Env = []string{"PATH=" + dir + "/bin:/usr/bin:/bin", "ARCHIVE=" + archive}
		said, err := cmd.CombinedOutput()
		if (err == nil) != (c.says == "") || !strings.Contains(string(said), c.says) {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		if left, _ := filepath.Glob(built + "/*"); len(left) != 1 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}
