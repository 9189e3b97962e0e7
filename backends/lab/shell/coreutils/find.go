package coreutils

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// find supports -name, -type and -path, each also after !, combined by "and", and -printf with %p and %f. As in find(1), the expression
// begins with the first word that starts with - or is !.
func find(_ context.Context, p *sh.Proc) int {
	var roots []string
	args := p.Args[1:]
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	type test func(name string, i vfs.Info) bool
	var tests []test
	not := false
	add := func(t test) {
		want := !not
		tests, not = append(tests, func(name string, i vfs.Info) bool { return t(name, i) == want }), false
	}
	format := "%p\n"
	for len(args) > 0 {
		what := args[0]
		args = args[1:]
		if what == "!" {
			not = !not
			continue
		}
		if len(args) == 0 {
			return p.Errorf("missing argument to `%s'", what)
		}
		value := args[0]
		args = args[1:]
		switch what {
		case "-printf":
			format = value
		case "-name":
			add(func(name string, _ vfs.Info) bool { ok, _ := path.Match(value, path.Base(name)); return ok })
		case "-path":
			add(func(name string, _ vfs.Info) bool { ok, _ := path.Match(value, name); return ok })
		case "-type":
			want, ok := map[string]fs.FileMode{"f": 0, "d": fs.ModeDir, "l": fs.ModeSymlink}[value]
			if !ok {
				return p.Errorf("Unknown argument to -type: %s", value)
			}
			add(func(_ string, i vfs.Info) bool { return i.Type() == want })
		default:
			return p.Errorf("unknown predicate `%s'", what)
		}
	}
	if not {
		return p.Errorf("expected an expression after '!'")
	}
	status := 0
	for _, root := range roots {
		base := p.Path(root)
		err := p.Sys.FS.Walk(p.User.Cred(), base, func(name string, i vfs.Info) error {
			rel := strings.TrimPrefix(strings.TrimPrefix(name, base), "/")
			shown := root
			if rel != "" {
				shown = strings.TrimSuffix(root, "/") + "/" + rel
			}
			for _, ok := range tests {
				if !ok(shown, i) {
					return nil
				}
			}
			p.Printf("%s", strings.NewReplacer("%p", shown, "%f", path.Base(shown), `\n`, "\n", `\t`, "\t", "%%", "%").Replace(format))
			return nil
		})
		if err != nil {
			status = p.Errorf("'%s': %s", root, vfs.Reason(err))
		}
	}
	return status
}
