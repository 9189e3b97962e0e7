package pkgs

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

func (db *DB) dpkg(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("C i install unpack configure a audit pending no-triggers auto-deconfigure status-fd: " +
		"force-confdef force-confold force-remove-reinstreq force-depends force: r P remove purge")
	if err != nil {
		fmt.Fprintf(p.Stderr, "dpkg: error: %v\n", err)
		return 2
	}
	switch {
	case o.Has("C", "audit"):
		return db.dpkgAudit(p)
	case o.Has("unpack", "configure", "i", "install", "r", "P", "remove", "purge"):
		if !p.Root() {
			fmt.Fprintf(p.Stderr, "dpkg: error: requested operation requires superuser privilege\n")
			return 2
		}
		release, ok := db.backend(p)
		if !ok {
			return 2
		}
		defer release()
		return db.dpkgChange(ctx, p, o)
	}
	fmt.Fprintf(p.Stderr, "dpkg: error: need an action option\n")
	return 2
}

// dpkgChange runs the operations of dpkg that require its lock.
func (db *DB) dpkgChange(ctx context.Context, p *sh.Proc, o sh.Options) int {
	switch {
	case o.Has("i", "install"):
		if bad := db.fromFile(p, o.Args); bad != "" {
			fmt.Fprintf(p.Stderr, "dpkg: error: cannot access archive '%s': No such file or directory\n", bad)
			return 2
		}
		return 0
	case o.Has("unpack"):
		return db.dpkgUnpack(ctx, p, o.Args)
	case o.Has("configure") && len(o.Args) == 0 && !o.Has("a", "pending"):
		fmt.Fprintf(p.Stderr, "dpkg: error: --configure needs at least one package name argument\n")
		return 2
	case o.Has("configure"):
		return db.dpkgConfigure(ctx, p, o.Args)
	}
	force := o.Has("force-remove-reinstreq") || strings.Contains(o.Value("force"), "remove-reinstreq")
	return db.dpkgRemove(ctx, p, o.Args, o.Has("P", "purge"), force)
}

func (db *DB) dpkgQuery(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("W f: showformat: show")
	if err != nil {
		fmt.Fprintf(p.Stderr, "dpkg-query: error: %v\n", err)
		return 2
	}
	if !o.Has("W", "show") {
		fmt.Fprintf(p.Stderr, "dpkg-query: error: need an action option\n")
		return 2
	}
	return db.dpkgShow(p, o)
}

// matching returns the packages in dpkg's database that match a pattern.
func (db *DB) matching(pattern string) []Package {
	var list []Package
	pattern, _, _ = strings.Cut(pattern, ":")
	for _, pkg := range db.known() {
		if ok, _ := path.Match(pattern, pkg.Name); ok {
			list = append(list, pkg)
		}
	}
	return list
}

func (db *DB) dpkgShow(p *sh.Proc, o sh.Options) int {
	format := o.Value("f", "showformat")
	if format == "" {
		format = `${binary:Package}\t${Version}\n`
	}
	format = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(format)
	patterns, code := o.Args, 0
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	var out strings.Builder
	for _, pattern := range patterns {
		list := db.matching(pattern)
		if list == nil {
			fmt.Fprintf(p.Stderr, "dpkg-query: no packages found matching %s\n", pattern)
			code = 1
		}
		for _, pkg := range list {
			state := db.state(pkg.Name)
			status := map[string]string{
				"ii": "installed", unpacked: "unpacked", tornUnpacked: "unpacked",
				halfConfigured: "half-configured", halfInstalled: "half-installed", halfRemoved: "half-installed",
			}[state]
			want := map[string]string{halfInstalled: "install reinstreq ", tornUnpacked: "install reinstreq ", halfRemoved: "purge ok "}[state]
			if want == "" {
				want = "install ok "
			}
			out.WriteString(os.Expand(format, func(field string) string {
				switch field {
				case "Package", "binary:Package":
					return pkg.Name
				case "Version":
					return pkg.Version
				case "Architecture":
					return pkg.Arch
				case "Status":
					return want + status
				case "db:Status-Abbrev":
					return fmt.Sprintf("%-3s", state)
				case "db:Status-Status":
					return status
				case "Provides":
					return strings.Join(pkg.Provides, ", ")
				}
				return ""
			}))
		}
	}
	p.Printf("%s", out.String())
	return code
}
