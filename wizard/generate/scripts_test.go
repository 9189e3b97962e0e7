package generate_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
	"github.com/rdma-setup/rdma-setup/wizard/generate/containers"
)

var placeholder = regexp.MustCompile(`@[A-Z0-9_]+@`)

// Each generated script has no value left out, and is parsed by every installed shell and linter.
func TestGeneratedScripts(t *testing.T) {
	scripts := map[string]string{}
	for name, d := range map[string]containers.Setup{
		"docker-setup": {}, "docker-setup, everything": {NVIDIA: true, RemoveOld: true, RemoveNVIDIA1: true},
	} {
		scripts[name] = d.Script(origin)
	}
	over := horovod()
	over.Net = generate.NCCL{Path: generate.TCP, GID: -1}
	for name, h := range map[string]generate.Horovod{"horovod": horovod(), "horovod over TCP": over} {
		text, err := h.Script(origin)
		if err != nil {
			t.Fatal(err)
		}
		scripts[name] = text
	}
	marked := osu(6)
	marked.Class, marked.Device = 106, "mlx5_0"
	for name, o := range map[string]generate.OSU{"osu": osu(2), "osu with a class": marked} {
		text, err := o.Script(origin)
		if err != nil {
			t.Fatal(err)
		}
		scripts[name] = text
	}
	for name, text := range scripts {
		if left := placeholder.FindString(text); left != "" {
			t.Errorf("%s: %s has no value", name, left)
		}
		for _, check := range [][]string{{"sh", "-n"}, {"dash", "-n"}, {"busybox", "ash", "-n"}, {"shellcheck", "-s", "sh", "-"}} {
			if _, err := exec.LookPath(check[0]); err != nil {
				continue
			}
			c := exec.Command(check[0], check[1:]...)
			c.Stdin = strings.NewReader(text)
			if said, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", name, strings.Join(check, " "), err, said)
			}
		}
	}
}
