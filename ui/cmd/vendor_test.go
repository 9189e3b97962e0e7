package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// TestVendorNamesAreBelowNICOnly: only families below backends/nic contain the names of drivers, their modules and firmware tools.
// Plans, checks and screens use the interface. Their tests and testdata may name tools and other drivers, but not that of the ConnectX
// cards, which most of them have: they ask mlx5.Family.
func TestVendorNamesAreBelowNICOnly(t *testing.T) {
	t.Parallel()
	names := append(nic.RDMAModules(), "nmlx4_core", "nmlx4_en", "bnxtnet", "qedentv", "mlxconfig", "flint", "mst", "mlnx_qos")
	for _, f := range nic.Families() {
		names = append(append(append(names, f.Driver(), f.Name()), f.VIBs()...), nic.Tools(f)...)
	}
	named := regexp.MustCompile(`\b(?:` + strings.Join(names, "|") + `)\b`)
	for _, room := range []string{"wizard", "checks", "ui"} {
		files := 0
		err := filepath.WalkDir(filepath.Join(root(t), room), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			code := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
			if code {
				files++
			}
			for i, line := range strings.Split(string(text), "\n") {
				if strings.Contains(line, connectX.Name()) {
					t.Errorf("%s:%d names %s: ask mlx5.Family\n%s", path, i+1, connectX.Name(), line)
				} else if !code {
					continue
				} else if found := named.FindString(line); found != "" {
					t.Errorf("%s:%d names %s: ask backends/nic\n%s", path, i+1, found, line)
				}
			}
			return nil
		})
		if err != nil || files < 10 {
			t.Errorf("%s: %d files read, %v", room, files, err)
		}
	}
}
