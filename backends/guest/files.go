package guest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// A keptFile is a file as it was, or that it was not there: what a Restore puts back to the byte.
type keptFile struct {
	Path    string `json:"path"`
	Missing bool   `json:"missing,omitempty"`
	Mode    uint32 `json:"mode,omitempty"`
	Owner   string `json:"owner,omitempty"` // uid:gid
	Content []byte `json:"content,omitempty"`
}

// dumpScript prints the files that a list of patterns names: a head line, then the bytes. Missing ones are passed by.
func dumpScript(patterns string) string {
	return `for f in ` + patterns + `; do
	[ -f "$f" ] && [ -r "$f" ] || continue
	echo "file $(stat -L -c '%a|%u:%g|%s' "$f")|$f"
	cat "$f"
	echo
done`
}

// dumped reads what dumpScript printed.
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

// snapshot takes files aside, missing ones too.
func (g *Guests) snapshot(ctx context.Context, vm string, paths ...string) ([]keptFile, error) {
	out, err := g.ask(ctx, vm, "read the files that will change", ssh.Command{Script: dumpScript(ssh.QuoteAll(paths...)), MaxOutput: 8 << 20})
	if err != nil {
		return nil, err
	}
	found := dumped(out)
	kept := make([]keptFile, len(paths))
	for i, p := range paths {
		kept[i] = keptFile{Path: p, Missing: true}
		if at := slices.IndexFunc(found, func(f keptFile) bool { return f.Path == p }); at >= 0 {
			kept[i] = found[at]
		}
	}
	return kept, nil
}

// restore puts files back to the byte.
func (g *Guests) restore(ctx context.Context, vm string, files []keptFile) error {
	var gone []string
	for _, f := range files {
		if f.Missing {
			gone = append(gone, f.Path)
		} else if err := g.put(ctx, vm, f.Path, f.Content, fs.FileMode(f.Mode), f.Owner); err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	_, err := g.root(ctx, vm, "remove "+strings.Join(gone, ", "), ssh.Command{Argv: append([]string{"rm", "-f", "--"}, gone...)})
	return err
}

// A fileState is what a file is compared by.
type fileState struct {
	Mode   uint32 `json:"mode"`
	Owner  string `json:"owner"` // uid:gid
	SHA256 string `json:"sha256"`
}

// fileItems records files, missing ones too.
func fileItems(files []keptFile) []backends.Item {
	var out []backends.Item
	for _, f := range files {
		i := backends.Item{Kind: backends.ItemFile, Name: f.Path}
		if !f.Missing {
			i.State, i.Content = backends.ValueOf(fileState{f.Mode, f.Owner, fmt.Sprintf("%x", sha256.Sum256(f.Content))}), f.Content
		}
		out = append(out, i)
	}
	return out
}

// filesOf gives the files of a record.
func filesOf(kept backends.Kept) ([]keptFile, error) {
	var out []keptFile
	for _, i := range kept.Items {
		var st fileState
		switch {
		case i.Kind != backends.ItemFile:
		case i.State.IsAbsent():
			out = append(out, keptFile{Path: i.Name, Missing: true})
		default:
			if err := i.State.Decode(&st); err != nil {
				return nil, err
			}
			out = append(out, keptFile{Path: i.Name, Mode: st.Mode, Owner: st.Owner, Content: i.Content})
		}
	}
	return out, nil
}

// observeFiles gives the files of a record as they are now.
func (g *Guests) observeFiles(ctx context.Context, vm string, kept backends.Kept) ([]backends.Item, error) {
	var paths []string
	for _, i := range kept.Items {
		if i.Kind == backends.ItemFile {
			paths = append(paths, i.Name)
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	files, err := g.snapshot(ctx, vm, paths...)
	return fileItems(files), err
}

// badKept is the error of a journalled value that is none of ours.
func badKept(vm string, err error) error {
	return backends.Errorf(backends.KindPermanent, label(vm), "", "what was kept to go back to cannot be read: %w", err)
}
