//go:build e2e

package realtest_test

import (
	"embed"
	"os"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/guest/realtest"
)

//go:embed all:image needs.sh
var sources embed.FS

// guestImage returns the directory with root.ext4, rdma.ext4, mpi.ext4, vmlinux and initrd.
func guestImage(t *testing.T) string {
	t.Helper()
	return realtest.Kept(t, "image", sources, func(dir string) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"./needs.sh", "latest"}, {"./image/build.sh", dir}} {
			if out, err := realtest.AsRoot(t.Context(), command...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	})
}
