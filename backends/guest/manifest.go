package guest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// A manifest names the things that a change of a guest may touch. They are recorded before the change, and restored from the
// record.
type manifest struct {
	files []string
	links []string // symbolic links
	units []string // of systemd
	ramfs bool     // files of this program in the initial RAM disks
	// sysctls are paths below /proc/sys. Their values are lost at a boot or if the interface is created again.
	sysctls []string
}

// A recorded setting implements Keeper with a record of its manifest.
type recorded struct {
	g     *Guests
	files []string // always these; settings whose manifest depends on the guest have a Keep of their own
}

func (r recorded) Keep(ctx context.Context, s backends.Setting, _ backends.Value) (backends.Kept, error) {
	return r.g.record(ctx, s.Target.Name, manifest{files: r.files})
}

func (r recorded) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	items, err := r.g.readItems(ctx, s.Target.Name, manifestOf(kept))
	return backends.Kept{Items: items}.Bare(), err
}

// Restore restores the files exactly, restores the state of links and units, and renews initial RAM disks that contain other
// files of this program than the record.
func (r recorded) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	return r.g.putBack(ctx, s.Target.Name, kept)
}

func manifestOf(kept backends.Kept) manifest {
	var m manifest
	for _, i := range kept.Items {
		switch i.Kind {
		case backends.ItemFile:
			m.files = append(m.files, i.Name)
		case backends.ItemLink:
			m.links = append(m.links, i.Name)
		case backends.ItemUnit:
			m.units = append(m.units, i.Name)
		case backends.ItemSysctl:
			m.sysctls = append(m.sysctls, i.Name)
		case backends.ItemInitramfs:
			m.ramfs = true
		}
	}
	return m
}

// anyImage is the item for all initial RAM disks that contain nothing of this program.
const anyImage = "/boot"

const (
	readState       = "read the current state of what a change may affect"
	readStateOutput = 8 << 20 // maximum size
)

// query returns the arguments of read-state.sh for a manifest, and its items as if all were missing.
func (m manifest) query() (args []string, items []backends.Item) {
	add := func(kind backends.ItemKind, word string, names ...string) {
		for _, n := range names {
			args = append(args, word, n)
			items = append(items, backends.Item{Kind: kind, Name: n})
		}
	}
	add(backends.ItemFile, "file", m.files...)
	add(backends.ItemLink, "link", m.links...)
	add(backends.ItemUnit, "unit", m.units...)
	add(backends.ItemSysctl, "sysctl", m.sysctls...)
	if m.ramfs {
		add(backends.ItemInitramfs, "images", anyImage)
	}
	return args, items
}

// asked identifies the answer of read-state.sh; see backends.Reads.
func asked(vm string, args []string) string { return fmt.Sprintln(vm, args) }

// readItems returns the current items of a manifest, including missing ones, and files that an interrupted write left beside a file.
func (g *Guests) readItems(ctx context.Context, vm string, m manifest) ([]backends.Item, error) {
	args, items := m.query()
	if len(args) == 0 {
		return nil, nil
	}
	// A failure is not kept: a guest that could not start a program, or printed something else, is asked again.
	found, err := backends.Again(ctx, asked(vm, args), func() ([]backends.Item, error) {
		r, err := g.run(ctx, vm, ssh.Command{Script: script("read-state.sh", args...), What: readState, Sudo: true, MaxOutput: readStateOutput})
		return foundItems(vm, readState, r, err)
	})
	if err != nil {
		return nil, err
	}
	return filled(items, found), nil
}

// stateMark begins the output of read-state.sh after that of another script.
const stateMark = mark + "state\n"

// lookBeside is look and readItems in one command, if the answers to neither are known and the command runs as root.
func (g *Guests) lookBeside(ctx context.Context, vm string, cmd ssh.Command, m manifest) (ssh.Result, []backends.Item, error) {
	args, items := m.query()
	reads := backends.ReadsOf(ctx)
	if len(args) == 0 || !cmd.Sudo || reads.Knows(question(vm, cmd)) || reads.Knows(asked(vm, args)) {
		r, err := g.look(ctx, vm, cmd)
		if err == nil {
			items, err = g.readItems(ctx, vm, m)
		}
		return r, items, err
	}
	both := cmd
	both.What += ", state"
	both.MaxOutput += readStateOutput
	both.Script = "(\n" + cmd.Script + ")\n" + sectionStart + "state\n" + script("read-state.sh", args...)
	r, err := g.run(ctx, vm, both)
	text, state, _ := strings.Cut(r.Stdout, stateMark)
	r.Stdout = state
	found, err := foundItems(vm, both.What, r, err)
	if err != nil {
		return ssh.Result{}, nil, err
	}
	r.Stdout = text
	reads.Keep(question(vm, cmd), r)
	reads.Keep(asked(vm, args), found)
	return r, filled(items, found), nil
}

// foundItems returns the items that read-state.sh printed in a command that is named what.
func foundItems(vm, what string, r ssh.Result, err error) ([]backends.Item, error) {
	out, err := answered(vm, what, r, err)
	if err != nil {
		return nil, err
	}
	list, err := parseItems(out)
	if err != nil {
		return nil, backends.Transientf(label(vm),
			"look at what the guest says of it (ls -l, lsinitramfs -l), then run it again", "%s: %w", what, err)
	}
	return list, nil
}

// filled returns items with the states that were found, and more that were found beside them.
func filled(items, found []backends.Item) []backends.Item {
	for _, seen := range found {
		at := slices.IndexFunc(items, func(i backends.Item) bool { return i.Kind == seen.Kind && i.Name == seen.Name })
		if at < 0 {
			items = append(items, seen)
			continue
		}
		items[at] = seen
	}
	for i := range items {
		items[i].Runtime = items[i].Kind == backends.ItemSysctl
	}
	return items
}

// record returns the items of a manifest, and more, as the record of a change, without what another party's interrupted write left
// beside a file. Each write removes that first, and Restore must not bring it back.
func (g *Guests) record(ctx context.Context, vm string, m manifest, more ...backends.Item) (backends.Kept, error) {
	items, err := g.readItems(ctx, vm, m)
	items = slices.DeleteFunc(items, func(i backends.Item) bool {
		return i.Kind == backends.ItemFile && slices.ContainsFunc(m.files, func(file string) bool {
			is, _ := path.Match(temporaryFiles(file), i.Name) // the pattern is well-formed: no file of this program has a bracket in its name
			return is
		})
	})
	return backends.Kept{Items: append(items, more...)}, err
}

// parseItems parses the output of read-state.sh. A file without a mode or an owner or of another length, or an unexpected list of an
// initial RAM disk, is an error: it would be recorded as what there was before a change, and no rollback could restore it. Other lines,
// such as the greeting of a login shell, are ignored.
func parseItems(out string) ([]backends.Item, error) {
	var items []backends.Item
	for out != "" {
		head, rest, _ := strings.Cut(out, "\n")
		word, about, _ := strings.Cut(head, " ")
		w := strings.SplitN(about, "|", 4)
		switch {
		case word == "file" && len(w) == 4:
			mode, err := strconv.ParseUint(w[0], 8, 32)
			if err != nil || w[1] == "" {
				return nil, fmt.Errorf("the mode and the owner of %s are not understood: %q", w[3], head)
			}
			size, err := strconv.Atoi(w[2])
			end := "\nend " + w[3] + "\n"
			if err != nil || size < 0 || size > len(rest) || !strings.HasPrefix(rest[size:], end) {
				return nil, fmt.Errorf("the content of %s has another length than its size: %q", w[3], head)
			}
			content := []byte(rest[:size])
			items = append(items, backends.Item{Kind: backends.ItemFile, Name: w[3], Content: content,
				State: backends.ValueOf(fileState{uint32(mode), w[1], fmt.Sprintf("%x", sha256.Sum256(content))})})
			rest = rest[size+len(end):]
		case word == "is" && len(w) >= 3:
			state := strings.TrimSpace(strings.Join(w[2:], "|"))
			if w[0] == string(backends.ItemInitramfs) && !listsFiles(state) {
				return nil, fmt.Errorf("the list of the files in %s is not understood: %.80q", w[1], state)
			}
			items = append(items, backends.Item{Kind: backends.ItemKind(w[0]), Name: w[1], State: backends.ValueOf(state)})
		}
		out = rest
	}
	return items, nil
}

// listsFiles reports whether the state of an initial RAM disk consists of paths and sizes.
func listsFiles(state string) bool {
	list := strings.Fields(strings.TrimSuffix(state, unfinishedImage))
	for i, word := range list {
		if _, err := strconv.ParseUint(word, 10, 64); i%2 == 1 && err != nil {
			return false
		}
	}
	return len(list)%2 == 0
}

// put writes a file atomically, as a step.
func (g *Guests) put(ctx context.Context, vm, name string, content []byte, mode fs.FileMode, owner string) error {
	_, err := g.root(ctx, vm, "write "+name, ssh.Command{Script: ssh.PutScript(name, len(content), mode, owner), Stdin: content})
	return err
}

// putBack restores the files, links and units of a record that differ from the current state, and renews initial RAM disks that
// differ. It reads the current state first, so that it can be repeated at any point.
func (g *Guests) putBack(ctx context.Context, vm string, kept backends.Kept) error {
	items, err := g.readItems(ctx, vm, manifestOf(kept))
	if err != nil {
		return err
	}
	var gone, links, stop, start, numbers []string
	units, renew := false, false
	var leftover []string // of an interrupted update-initramfs
	for _, d := range backends.Differences(kept, backends.Kept{Items: items}) {
		switch d.Kind {
		case backends.ItemFile:
			units = units || strings.HasPrefix(d.Name, unitDir)
			if d.Was.IsAbsent() {
				gone = append(gone, d.Name)
				continue
			}
			var was fileState
			if target, is := strings.CutPrefix(stateText(d.Was), "symbolic link to "); is {
				links = append(links, fmt.Sprintf("ln -sfn -- %s %s", ssh.Quote(target), ssh.Quote(d.Name)))
				continue
			} else if err := d.Was.Decode(&was); err != nil {
				return badKept(vm, fmt.Errorf("%s %s was %s", d.Kind, d.Name, d.Was))
			}
			if err := g.put(ctx, vm, d.Name, kept.Item(d.Kind, d.Name).Content, fs.FileMode(was.Mode), was.Owner); err != nil {
				return err
			}
		case backends.ItemLink:
			units = true
			var target string
			if d.Was.IsAbsent() {
				gone = append(gone, d.Name)
			} else if err := d.Was.Decode(&target); err != nil {
				return badKept(vm, err)
			} else {
				links = append(links, fmt.Sprintf("ln -sfn -- %s %s", ssh.Quote(target), ssh.Quote(d.Name)))
			}
		case backends.ItemUnit:
			units = true
			switch was, is := activity(d.Was), activity(d.Is); {
			case (is || enabled(d.Is)) && !was && !enabled(d.Was), d.Was.IsAbsent():
				stop = append(stop, d.Name)
			case was && !is:
				start = append(start, d.Name)
			}
		case backends.ItemSysctl:
			numbers = append(numbers, d.Name, stateText(d.Was))
		case backends.ItemInitramfs:
			if unfinished(d.Is) && !unfinished(d.Was) {
				leftover = append(leftover, d.Name+".new")
			}
			renew = renew || holds(d.Is) != holds(d.Was)
		}
	}
	var b strings.Builder
	if len(gone)+len(leftover) > 0 {
		b.WriteString("rm -f -- " + ssh.QuoteAll(append(gone, leftover...)...) + " || exit 1\n")
	}
	for _, l := range links {
		b.WriteString(l + " || exit 1\n")
	}
	if units {
		b.WriteString("systemctl daemon-reload || exit 1\n")
	}
	for _, u := range stop { // a unit without a file is not found unless it is running
		b.WriteString("systemctl stop " + ssh.Quote(u) + " 2>/dev/null || ! systemctl is-active --quiet " + ssh.Quote(u) + " || exit 1\n" +
			resetFailed(u))
	}
	for _, u := range start {
		b.WriteString("systemctl start " + ssh.Quote(u) + " || exit 1\n")
	}
	if b.Len() > 0 {
		if _, err := g.root(ctx, vm, "put back "+names(kept), ssh.Command{Script: b.String()}); err != nil {
			return err
		}
	}
	if len(numbers) > 0 {
		if _, err := g.root(ctx, vm, "put back "+names(kept), ssh.Command{Script: script("sysctl-set.sh", numbers...)}); err != nil {
			return err
		}
	}
	if renew {
		return g.renewRAMDisk(ctx, vm)
	}
	return nil
}

// resetFailed returns the command that makes systemd forget that a unit failed: a unit that failed stays loaded without its file
// (systemd.unit(5), Unit Garbage Collection).
func resetFailed(unit string) string {
	return "systemctl reset-failed " + ssh.Quote(unit) + " 2>/dev/null || :\n"
}

// names returns what a record is about, for the name of a step.
func names(kept backends.Kept) string {
	var list []string
	for _, i := range kept.Items {
		if i.Kind == backends.ItemFile {
			list = append(list, path.Base(i.Name))
		}
	}
	return strings.Join(list, ", ")
}

func stateText(v backends.Value) string {
	var text string
	if v.IsAbsent() || v.Decode(&text) != nil {
		return ""
	}
	return text
}

// enabled reports whether a unit starts at boot, whether or not it is running.
func enabled(v backends.Value) bool { return strings.HasPrefix(stateText(v), "enabled") }

func activity(v backends.Value) bool { return strings.HasSuffix(stateText(v), " active") }

const unfinishedImage = "(unfinished)"

func unfinished(v backends.Value) bool { return strings.HasSuffix(stateText(v), unfinishedImage) }

// holds returns the files of this program that an image contains.
func holds(v backends.Value) string {
	return strings.TrimSpace(strings.TrimSuffix(stateText(v), unfinishedImage))
}
