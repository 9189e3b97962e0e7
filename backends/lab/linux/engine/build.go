package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A step is one instruction of a Dockerfile.
type step struct{ word, rest string }

// steps parses a Dockerfile. It drops comments, including those between the lines of an instruction.
func steps(text string) []step {
	var list []step
	var whole strings.Builder
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\n")
		if t := strings.TrimSpace(l); t == "" || strings.HasPrefix(t, "#") {
			continue
		}
		if more, ok := strings.CutSuffix(l, "\\"); ok {
			whole.WriteString(more)
			continue
		}
		whole.WriteString(l)
		word, rest, _ := strings.Cut(strings.TrimSpace(whole.String()), " ")
		list = append(list, step{strings.ToUpper(word), strings.TrimSpace(rest)})
		whole.Reset()
	}
	return list
}

// pull implements the command pull.
func (e *Engine) pull(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("q")
	if err != nil || len(o.Args) != 1 {
		return p.Usage(125, err)
	}
	name := tagged(o.Args[0])
	if err := e.Pull(p.Sys.Now, name); err != nil {
		fmt.Fprintf(p.Stderr, "Error response from daemon: %v\n", err)
		return 1
	}
	p.Printf("Status: Downloaded newer image for %s\n", name)
	return 0
}

// Pull downloads an image by its full name.
func (e *Engine) Pull(now func() time.Time, name string) error {
	i, why := e.fetch(now, name)
	if i == nil {
		return errors.New(why)
	}
	i.id = digest(name)
	e.add(i, name)
	return nil
}

// fetch returns an image from a registry, or nil and the reason if no registry has it.
func (e *Engine) fetch(now func() time.Time, name string) (*image, string) {
	base, known := bases()[name]
	if !known {
		return nil, fmt.Sprintf("%[1]s: failed to resolve source metadata for %[1]s: %[1]s: not found", name)
	}
	r, err := newRoot(now, base)
	if err != nil {
		return nil, err.Error()
	}
	none := e.Verbs(func(string) bool { return false })
	r.sys.Programs = r.programs(none, e.Tool(none))
	return &image{root: r, labels: map[string]string{}, entrypoint: base.entrypoint}, ""
}

func (e *Engine) build(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("t: tag: f: file: label: format: no-cache q pull network: progress:")
	if err != nil {
		return p.Usage(125, err)
	}
	if len(o.Args) != 1 {
		fmt.Fprintf(p.Stderr, "ERROR: \"docker buildx build\" requires exactly 1 argument.\n")
		return 1
	}
	file := o.Value("f", "file")
	if file == "" {
		file = vfs.Join(p.Path(o.Args[0]), "Dockerfile")
	}
	text, err := p.Sys.FS.ReadFile(p.User.Cred(), p.Path(file))
	if err != nil {
		fmt.Fprintf(p.Stderr, "ERROR: failed to solve: failed to read dockerfile: open %s: no such file or directory\n", file)
		return 1
	}
	labels := map[string]string{}
	for _, l := range o.Values("label") {
		k, v, _ := strings.Cut(l, "=")
		labels[k] = v
	}
	i, why := e.made(ctx, p, string(text))
	if i == nil {
		fmt.Fprintf(p.Stderr, "ERROR: failed to solve: %s\n", why)
		return 1
	}
	maps.Copy(i.labels, labels)
	i.id = digest(string(text) + fmt.Sprint(labels) + p.Sys.Now().String())
	for _, name := range append(o.Values("t"), o.Values("tag")...) {
		e.add(i, name)
		fmt.Fprintf(p.Stderr, "#9 naming to docker.io/library/%s done\n", tagged(name))
	}
	return 0
}

// made executes the instructions of a Dockerfile and returns the image, or nil and the reason if one fails.
func (e *Engine) made(ctx context.Context, p *sh.Proc, text string) (*image, string) {
	var i *image
	shell, dir := []string{"/bin/sh", "-c"}, "/"
	for n, s := range steps(text) {
		if i == nil && s.word != "FROM" {
			return nil, "dockerfile parse error on line 1: no build stage in current context"
		}
		fmt.Fprintf(p.Stderr, "#%d [%d] %s %s\n", n+4, n+1, s.word, s.rest)
		switch s.word {
		case "FROM":
			var why string
			if i, why = e.fetch(p.Sys.Now, tagged(s.rest)); i == nil {
				return nil, why
			}
		case "SHELL":
			shell = nil
			if json.Unmarshal([]byte(s.rest), &shell) != nil || len(shell) == 0 {
				return nil, "dockerfile parse error: SHELL requires the arguments to be in JSON form"
			}
		case "RUN":
			var out bytes.Buffer
			args := append(append([]string{}, shell...), s.rest)
			proc := &sh.Proc{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Env: containerEnv, Dir: dir,
				User:    sh.User{Name: "root", Home: "/root"},
				Session: &sh.Session{Memlock: 64}, Sys: i.root.sys}
			status, err := i.root.sys.Exec(ctx, proc)
			fmt.Fprintf(p.Stderr, "%s", out.String())
			if err != nil || status != 0 {
				return nil, fmt.Sprintf("process %q did not complete successfully: exit code: %d", strings.Join(args, " "), status)
			}
		case "WORKDIR":
			dir = s.rest
			if err := i.root.sys.FS.MkdirAll(vfs.Root(), dir, 0o755); err != nil {
				return nil, err.Error()
			}
		case "ADD":
			return nil, "failed to load cache key: invalid response status 404" // the guest has no network to download a URL
		case "ENV", "LABEL", "ARG":
		default:
			return nil, "dockerfile parse error: unknown instruction: " + s.word
		}
	}
	if i == nil {
		return nil, "file with no instructions"
	}
	return i, ""
}
