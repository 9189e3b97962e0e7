package assets_test

import (
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/assets"
)

// Each script says in its first line that it is for sh, travels without its comments, and is read by a real shell.
func TestScripts(t *testing.T) {
	list, err := fs.Glob(assets.FS(), "scripts/*")
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, file := range list {
		name := strings.TrimPrefix(file, "scripts/")
		text, err := fs.ReadFile(assets.FS(), file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "#!/bin/sh\n# ") {
			t.Errorf("%s does not begin with #!/bin/sh and what it does", name)
		}
		if strings.Contains(string(text), "<<") {
			t.Errorf("%s holds a here document: comments are taken away line by line", name)
		}
		if strings.Contains(string(text), "' EXIT\n") && !strings.Contains(string(text), "HUP INT TERM PIPE") {
			t.Errorf("%s cleans up at its end, but not when nobody reads its output any more: dash does not run the trap of EXIT then", name)
		}
		bare := assets.Script(name)
		if strings.Contains("\n"+bare, "\n#") || bare == "" {
			t.Errorf("%s travels as %q", name, bare)
		}
		check := exec.Command("sh", "-n")
		check.Stdin = strings.NewReader(bare)
		if said, err := check.CombinedOutput(); err != nil {
			t.Errorf("sh -n %s: %v: %s", name, err, said)
		}
	}
}
