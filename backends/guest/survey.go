package guest

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/guest/pkgman"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// mark begins a section of the survey's output. No tool prints it.
const mark = "\x1e#"

// Survey reads every fact of a guest in at most two remote commands, and lets netplan judge what would be written in another. It never
// fails: if the guest cannot be read, Error says why; facts of missing tools are absent. Only the kernel's release is required.
func (g *Guests) Survey(ctx context.Context, vm string) backends.Guest {
	out := backends.Guest{VM: vm}
	c, err := g.conn(ctx, vm)
	if err != nil {
		return unasked(out, err)
	}
	out.Address, out.User = c.Address(), c.User()
	asked := time.Now()
	cmd := ssh.Command{What: "read the facts", Script: g.surveyScript(), Limit: 2 * time.Minute, MaxOutput: 8 << 20}
	mode, err := c.Sudo(ctx)
	var r ssh.Result
	if err == nil {
		cmd.Sudo = true
		r, err = c.Run(ctx, cmd)
	}
	switch backends.KindOf(err) {
	case backends.KindAuth, backends.KindPermission:
		// Nearly everything can be read without root.
		mode, out.SudoError, out.Hint = ssh.SudoNone, err.Error(), backends.HintOf(err)
		cmd.Sudo = false
		asked = time.Now()
		r, err = c.Run(ctx, cmd)
	}
	if err != nil {
		return unasked(out, err)
	}
	out.Sudo = mode
	f := sections(r.Stdout)
	n := f.fill(&out, g.options)
	if !kernelRelease.MatchString(out.Kernel) {
		return unasked(backends.Guest{VM: vm, Address: out.Address, User: out.User}, backends.Permanentf(label(vm),
			"Log in to the guest as the same user and run uname -r.",
			"uname -r printed no kernel release, which is needed to choose modules and drivers: %.60q", out.Kernel))
	}
	if m, ok := pkgman.For(path.Base(f.line("managers"))); ok {
		g.managers.Store(vm, m)
	}
	out.ClockSkew = f.clockSkew(asked, time.Now())
	if cmd.Sudo {
		g.tryComing(ctx, c, &n, trial(f["tried"]), &out)
	}
	return out
}

// kernelRelease matches the beginning of uname -r: 5.15.0-91-generic, 4.18.0-553.el8_10.x86_64.
var kernelRelease = regexp.MustCompile(`^[0-9]+\.[0-9]+`)

// clockSkew returns how far the guest's clock, which was read between two local times, is off; nil if it was not printed.
func (f facts) clockSkew(from, to time.Time) *int {
	s, err := strconv.ParseInt(f.line("clock"), 10, 64)
	if err != nil {
		return nil
	}
	var off time.Duration // date truncates to seconds
	switch t := time.Unix(s, 0); {
	case t.After(to):
		off = t.Sub(to)
	case t.Add(time.Second).Before(from):
		off = t.Add(time.Second).Sub(from)
	}
	return new(int(off.Round(time.Second) / time.Second))
}

func unasked(out backends.Guest, err error) backends.Guest {
	out.Error, out.ErrKind, out.Hint = err.Error(), backends.KindOf(err), backends.HintOf(err)
	return out
}

// facts are the sections of a survey by name.
type facts map[string]string

func sections(text string) facts {
	f := facts{}
	for part := range strings.SplitSeq(text, mark) {
		if name, body, ok := strings.Cut(part, "\n"); ok {
			f[name] = body
		}
	}
	return f
}

// facts runs a command that prints sections.
func (g *Guests) facts(ctx context.Context, vm string, cmd ssh.Command) (facts, error) {
	r, err := g.Run(ctx, vm, traced(cmd))
	return sections(r.Stdout), err
}

// lookFacts is facts for a look; see look.
func (g *Guests) lookFacts(ctx context.Context, vm string, cmd ssh.Command) (facts, error) {
	r, err := g.look(ctx, vm, traced(cmd))
	return sections(r.Stdout), err
}

// traced names the sections of a command for traces, if it has no name. It always exits with 0: a section that finds nothing is no failure.
func traced(cmd ssh.Command) ssh.Command {
	var names []string
	for _, part := range strings.Split(cmd.Script, sectionStart)[1:] {
		name, _, _ := strings.Cut(part, "\n")
		names = append(names, name)
	}
	cmd.What = cmp.Or(cmd.What, "read "+strings.Join(names, ", "))
	cmd.Script += ":\n"
	return cmd
}

const sectionStart = `printf '\036#%s\n' `

func (f facts) line(name string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(f[name]), "\n")
	return strings.TrimSpace(first)
}

// section wraps a part of a survey so that its failure does not affect the others.
func section(name, script string) string {
	return sectionStart + name + "\n{\n" + script + "\n} 2>/dev/null\n"
}

func (g *Guests) surveyScript() string {
	var b strings.Builder
	b.WriteString("(\n" + script("survey.sh", g.archives()...) + ")\n")
	for _, s := range [][2]string{
		{"dpkg", script("dpkg-versions.sh")},
		{"rpm", script("rpm-versions.sh", g.options.Packages...)},
		{"builtin", script("builtin.sh", g.options.Modules...)},
		{"available", script("modules.sh", g.options.Modules...)},
		{"rdma", script("rdma-devices.sh")},
	} {
		b.WriteString(section(s[0], s[1]))
	}
	b.WriteString(ofedScript())
	b.WriteString(networkScript())
	b.WriteString(section("tried", tryScript()))
	b.WriteString(persistScript())
	b.WriteString(section("classes", classUnit.facts()))
	b.WriteString(qosFacts())
	b.WriteString(section("environment", environmentFacts))
	b.WriteString(nouveauFacts())
	b.WriteString(gpuPersistFacts())
	b.WriteString(healthScript(g.images()))
	b.WriteString(buildFacts())
	b.WriteString(":\n") // as in traced
	return b.String()
}

// available returns the modules of a list that modules.sh has found, and those that are built into the kernel; nil if it could not ask.
func (f facts) available(modules []string) []string {
	found := moduleNames(f["available"])
	if !slices.Contains(found, "modinfo") {
		return nil
	}
	return ordered(modules, append(found, f.builtIn()...))
}

// builtIn returns the modules that builtin.sh has found. They are always loaded, and cannot be unloaded.
func (f facts) builtIn() []string { return moduleNames(f["builtin"]) }

// moduleNames returns the names of modules that are listed by name or by file.
func moduleNames(text string) []string {
	names := strings.Fields(text)
	for i, name := range names {
		name, _, _ = strings.Cut(path.Base(name), ".ko")
		names[i] = strings.ReplaceAll(name, "-", "_")
	}
	return names
}

func (g *Guests) images() []string {
	if g.options.Images == nil {
		return nil
	}
	return g.options.Images()
}

func (g *Guests) archives() []string {
	if g.options.Archives == nil {
		return nil
	}
	return g.options.Archives()
}

// networkScript reads the interfaces and everything that configures them. It needs root for netplan's files.
func networkScript() string {
	return networkLinks() +
		section("addresses", "ip addr show") +
		section("routes", "ip -4 route show; ip -6 route show") +
		section("connection", "echo $SSH_CONNECTION") +
		section("netconfig", script("netconfig.sh")) +
		section("netnow", script("netnow.sh")) +
		section("netfiles", patterned("dump.sh", strings.ReplaceAll(netconf.Patterns, "\n", " ")+" "+sourced)) + arpScript()
}

// sourced are the files that /etc/network/interfaces includes (interfaces(5), "INCLUDING OTHER FILES").
const sourced = `$(sed -n -e 's/^[[:space:]]*source[[:space:]][[:space:]]*//p' -e 's/^[[:space:]]*source-directory[[:space:]][[:space:]]*\(.*\)/\1\/*/p' /etc/network/interfaces)`

func networkLinks() string {
	return section("links", script("links.sh"))
}

// A keptFile is a file with its metadata.
type keptFile struct {
	Path    string
	Mode    uint32
	Owner   string // uid:gid
	Content []byte
}

func dumped(text string) []keptFile {
	var files []keptFile
	for {
		head, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return files
		}
		parts := strings.SplitN(strings.TrimPrefix(head, "file "), "|", 4)
		if !strings.HasPrefix(head, "file ") || len(parts) != 4 {
			text = rest
			continue
		}
		mode, _ := strconv.ParseUint(parts[0], 8, 32)
		size, err := strconv.Atoi(parts[2])
		if err != nil || size < 0 || size > len(rest) {
			return files
		}
		files = append(files, keptFile{Path: parts[3], Mode: uint32(mode), Owner: parts[1], Content: []byte(rest[:size])})
		text = strings.TrimPrefix(rest[size:], "\n")
	}
}

// A fileState is the part of a file that is compared.
type fileState struct {
	Mode   uint32 `json:"mode"`
	Owner  string `json:"owner"` // uid:gid
	SHA256 string `json:"sha256"`
}

// badKept is the error for an invalid journalled value.
func badKept(vm string, err error) error {
	return backends.Permanentf(label(vm), "", "the saved previous state cannot be read: %w", err)
}
