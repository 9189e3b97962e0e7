package guest

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// build builds software from a file in the guest, and removes it: KindBuild. A file in buildDir records each build and whether it
// was completed, so that an interrupted build is recognized.
type build struct{ g *Guests }

const buildDir = stateDir + "/built"

// headerList are the headers that perftest is built with.
const headerList = "infiniband/verbs.h rdma/rdma_cma.h infiniband/umad.h pci/pci.h"

// findHeaders prints those that a compiler finds. libpci-dev of Ubuntu 24.04 and Debian 13 has its headers in the directory of the
// architecture.
const findHeaders = "for h in " + headerList + `; do
	for d in /usr/include /usr/include/*-linux-gnu; do [ -e "$d/$h" ] && echo "$h" && break; done
done`

// listBuilt prints a line for each build.
const listBuilt = "for f in " + buildDir + `/*; do [ -f "$f" ] && echo "${f##*/} $(cat "$f")"; done`

// buildFacts reads what was built, and which build tools are installed.
func buildFacts() string {
	return section("built", "echo read\n"+listBuilt) +
		section("buildtools", "echo read\nfor t in gcc make dkms; do command -v $t >/dev/null && echo $t; done\n"+findHeaders) +
		section("cudaheader", script("find-cuda.sh")) +
		section("ownperftest", backends.PerftestPrefix(backends.BuildSamePerftest)+"/bin/ib_send_bw --version")
}

func (f facts) builds(g *backends.Guest) {
	if rows, ok := strings.CutPrefix(f["built"], "read\n"); ok {
		g.Built = builtOf(rows)
	}
	if rows, ok := strings.CutPrefix(f["buildtools"], "read\n"); ok {
		g.BuildTools = append([]string{}, strings.Fields(rows)...)
	}
	g.CUDAHeader = f.line("cudaheader")
	if !g.Built[backends.BuildSamePerftest].IsAbsent() && !g.Built[backends.BuildSamePerftest].IsPartial() {
		g.OwnTests = perftestVersion(f["ownperftest"])
	}
}

// builtOf parses lines such as "nvidia done /mnt/share/NVIDIA-Linux-x86_64-570.133.20.run". An empty or truncated record, as left
// by a full disk or a power failure, means that the build was interrupted.
func builtOf(rows string) map[string]backends.Value {
	m := map[string]backends.Value{}
	for line := range strings.SplitSeq(rows, "\n") {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch state, file, ok := strings.Cut(rest, " "); {
		case name == "":
		case !ok || file == "":
			m[name] = backends.Partial(nil)
		case state == "done":
			m[name] = backends.ValueOf(file)
		default:
			m[name] = backends.Partial(file)
		}
	}
	return m
}

// Read returns the file that it was built from.
func (b build) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	f, err := b.g.facts(ctx, s.Target.Name, ssh.Command{Script: section("built", listBuilt)})
	if err != nil {
		return backends.Absent, err
	}
	return builtOf(f["built"])[s.Name], nil
}

// Set builds from the file, or removes what was built. It first removes what an interrupted build left behind.
func (b build) Set(ctx context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	vm := s.Target.Name
	now, err := b.Read(ctx, s)
	if err != nil || now == to {
		return err
	}
	if !now.IsAbsent() {
		if _, err := b.g.change(ctx, vm,
			step{what: "remove " + s.Name, keep: true, Command: ssh.Command{Script: removeScript(s.Name), Limit: 10 * time.Minute}}); err != nil {
			return err
		}
	}
	if to.IsAbsent() {
		return nil
	}
	var file string
	if err := to.Decode(&file); err != nil {
		return err
	}
	if !path.IsAbs(file) && !strings.Contains(file, "://") {
		return backends.Usagef(label(vm), "", "build %s: %q is neither a path in the guest nor a URL", s.Name, file)
	}
	r, err := b.g.step(ctx, vm,
		step{what: "build " + s.Name, keep: true, Command: ssh.Command{Script: buildScript(s.Name, file), Limit: 30 * time.Minute,
			MaxOutput: 4 << 20}})
	if err != nil {
		return err
	}
	if r.ExitCode != 0 {
		return buildError(vm, s.Name, file, r)
	}
	return nil
}

// itemBuild is a build of this program; state: the file that it was built from.
const itemBuild backends.ItemKind = "build"

// Keep records the build with its file, and the installation directory. An interrupted build is recorded as absent: each Set
// removes it first, and Restore must not bring it back.
func (b build) Keep(ctx context.Context, s backends.Setting, _ backends.Value) (backends.Kept, error) {
	items, err := b.items(ctx, s)
	for i := range items {
		if items[i].State.IsPartial() {
			items = []backends.Item{{Kind: itemBuild, Name: s.Name}}
			if s.Name != backends.BuildDriver {
				items = append(items, backends.Item{Kind: backends.ItemDirectory, Name: backends.PerftestPrefix(s.Name)})
			}
			break
		}
	}
	return backends.Kept{Items: items}, err
}

func (b build) Observe(ctx context.Context, s backends.Setting, _ backends.Kept) (backends.Kept, error) {
	items, err := b.items(ctx, s)
	return backends.Kept{Items: items}, err
}

func (b build) items(ctx context.Context, s backends.Setting) ([]backends.Item, error) {
	f, err := b.g.facts(ctx, s.Target.Name,
		ssh.Command{Script: section("built", listBuilt) +
			section("prefix", "stat -c '%a %u:%g' "+backends.PerftestPrefix(s.Name)+" 2>/dev/null")})
	if err != nil {
		return nil, err
	}
	items := []backends.Item{{Kind: itemBuild, Name: s.Name, State: builtOf(f["built"])[s.Name]}}
	if s.Name != backends.BuildDriver {
		dir := backends.Item{Kind: backends.ItemDirectory, Name: backends.PerftestPrefix(s.Name)}
		if is := f.line("prefix"); is != "" {
			dir.State = backends.ValueOf(is)
		}
		items = append(items, dir)
	}
	return items, nil
}

// Restore removes what was built, and rebuilds what was there before from the same file, which may no longer exist.
func (b build) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, progress backends.Progress) error {
	was := kept.Item(itemBuild, s.Name)
	if was == nil {
		return nil
	}
	err := b.Set(ctx, s, was.State, progress)
	var file string
	if err != nil && was.State.Decode(&file) == nil && backends.KindOf(err) == backends.KindPermanent &&
		strings.Contains(err.Error(), noSuchFile) {
		return backends.Permanentf(label(s.Target.Name),
			"Put "+file+" back, then run rdma-setup rollback again. To roll back without it, add --on-conflict keep.",
			"build %s again: %w", s.Name, backends.Unobtainable{Kind: itemBuild, Names: []string{s.Name}, Said: file + ": " + noSuchFile})
	}
	return err
}

const noSuchFile = "no such file in the guest"

// buildScript builds from a file; see assets/scripts/build.sh.
func buildScript(name, file string) string {
	switch name {
	case backends.BuildDriver:
		return script("build.sh", name, file, buildDir, stateDir, "", "", "")
	case backends.BuildSamePerftest:
		return script("build.sh", name, file, buildDir, stateDir, backends.PerftestPrefix(name), assets.Script("build-perftest.sh"), "")
	}
	return script("build.sh", name, file, buildDir, stateDir, backends.PerftestPrefix(name), assets.Script("build-perftest.sh"),
		assets.Script("find-cuda.sh"))
}

// removeScript removes a build, complete or not.
func removeScript(name string) string {
	prefix := ""
	if name != backends.BuildDriver {
		prefix = backends.PerftestPrefix(name)
	}
	return script("build-remove.sh", name, buildDir, stateDir, prefix)
}

func buildError(vm, name, file string, r ssh.Result) error {
	said := lastLines(r.Stderr, 3)
	kind, what, hint := backends.KindPermanent, "build perftest from "+file, "Build it by hand to see the full output: ./configure && make."
	switch name {
	case backends.BuildDriver:
		what, hint = "install the NVIDIA driver from "+file, "The full log is /var/log/nvidia-installer.log in the guest."
	case backends.BuildPerftest:
		hint = "Build it by hand to see the full output: ./configure CUDA_H_PATH=/usr/local/cuda/include/cuda.h && make."
	}
	for _, c := range []struct{ says, hint string }{
		{noSuchFile, "Copy the file there, or set the path under which the guest finds it."},
		{"not by this program", "Somebody else installed it: move it away, or remove " + perftestKey(name) + " from the answers."},
		{"download", "Check that the guest reaches the server and trusts its certificate, or copy the file into the guest and set its path."},
		{"SHA-256", "Set the SHA-256 of the file that is to be built, or find out who changed the file."},
		{"ouveau",
			"Write \"blacklist nouveau\" and \"options nouveau modeset=0\" into a file in /etc/modprobe.d, rebuild the initial RAM disk and " +
				"reboot the guest."},
		{"kernel source tree",
			"Install the headers of the running kernel (Debian, Ubuntu: linux-headers-$(uname -r); EL: kernel-devel-$(uname -r)), then run " +
				"rdma-setup resume."},
		{"kernel headers",
			"Install the headers of the running kernel (Debian, Ubuntu: linux-headers-$(uname -r); EL: kernel-devel-$(uname -r)), then run " +
				"rdma-setup resume."},
		{"compiler", "Install gcc in the release that built the kernel (cat /proc/version), then run rdma-setup resume."},
		{"-lcuda", "Install NVIDIA's driver first: it contains libcuda."},
		{"cuCtxCreate",
			"This release of perftest does not compile with CUDA 13: take one after July 2026 (linux-rdma/perftest pull request 376), or install " +
				"CUDA 12 and let /usr/local/cuda lead to it."},
		{"pciutils", "Install the headers of pciutils (libpci-dev, pciutils-devel), then run rdma-setup resume."},
		{"cuda.h",
			"Install the headers of CUDA (cuda-driver-dev, cuda-cudart-dev or nvidia-cuda-toolkit), or remove gpudirect.perftest from the answers."},
		{"Read-only file system", "Mount the file system of " + backends.PerftestPrefix(name) + " writable, then run " +
			"rdma-setup resume, or remove " +
			perftestKey(name) + " from the answers."},
		{"No space left", "Free some space in the guest."},
		{"already installed", "Remove the driver's packages first, or remove gpudirect.driver from the answers."},
	} {
		if strings.Contains(said, c.says) {
			hint = c.hint
			break
		}
	}
	if said == "" {
		said = "it ended without any output"
	}
	return backends.Errorf(kind, label(vm), hint, "%s: %s", what, said)
}

// perftestKey is the key of the answers that requests a build of perftest.
func perftestKey(name string) string {
	if name == backends.BuildSamePerftest {
		return "measure.perftest"
	}
	return "gpudirect.perftest"
}
