// Package engine implements Docker and Podman in the lab's guests: images from NVIDIA's registry and of Ubuntu, builds from a
// Dockerfile whose RUN instructions run in a separate root file system, and containers that use the guest's RDMA devices
// through the libraries of the image.
package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/perftest"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// An Engine runs containers in one guest. It is safe for concurrent use.
type Engine struct {
	Verbs func(provider func(driver string) bool) *rdma.Verbs // the guest's devices, accessed through other libraries
	Tool  func(*rdma.Verbs) perftest.Tool                     // perftest with these devices

	mu     sync.Mutex
	images []*image
}

// An image has its own root file system and programs.
type image struct {
	id         string
	tags       []string
	labels     map[string]string
	entrypoint string // text that the entry point prints first; "" if there is none
	root       *root
	running    int // number of running containers
}

// Programs returns the commands of the engine.
func (e *Engine) Programs() map[string]sh.Program {
	return map[string]sh.Program{"docker": e.command, "podman": e.command}
}

func (e *Engine) command(ctx context.Context, p *sh.Proc) int {
	if len(p.Args) < 2 {
		p.Printf("\nUsage:  %s [OPTIONS] COMMAND\n", p.Name())
		return 0
	}
	if !p.Root() && p.Name() == "docker" {
		fmt.Fprintf(p.Stderr,
			"permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix "+
				"/var/run/docker.sock: connect: permission denied\n")
		return 1
	}
	verb, args := p.Args[1], p.Args[2:]
	if verb == "image" && len(args) > 0 {
		verb, args = map[string]string{"ls": "images", "rm": "rmi", "inspect": "inspect"}[args[0]], args[1:]
	}
	run, ok := map[string]func(context.Context, *sh.Proc) int{
		"images": e.list, "inspect": e.inspect, "build": e.build, "run": e.run, "rmi": e.remove, "pull": e.pull, "tag": e.tag,
		"ps": func(context.Context, *sh.Proc) int { return 0 }, // a container ends with the command that runs it
	}[verb]
	if !ok {
		fmt.Fprintf(p.Stderr, "%s: '%s' is not a docker command.\nSee '%s --help'\n", p.Name(), p.Args[1], p.Name())
		return 1
	}
	child := *p
	child.Args = append([]string{p.Args[0] + " " + verb}, args...)
	return run(ctx, &child)
}

// tagged appends the default tag to a name without a tag.
func tagged(name string) string {
	if strings.Contains(name[strings.LastIndex(name, "/")+1:], ":") {
		return name
	}
	return name + ":latest"
}

// find returns an image by name or ID. The caller must hold mu.
func (e *Engine) find(name string) *image {
	i := slices.IndexFunc(e.images, func(i *image) bool {
		return slices.Contains(i.tags, tagged(name)) || len(name) >= 12 && strings.HasPrefix(i.id, strings.TrimPrefix(name, "sha256:"))
	})
	if i < 0 {
		return nil
	}
	return e.images[i]
}

func (e *Engine) list(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("q a format: filter: f: no-trunc")
	if err != nil {
		return p.Usage(125, err)
	}
	label, only := strings.CutPrefix(o.Value("filter", "f"), "label=")
	e.mu.Lock()
	defer e.mu.Unlock()
	if !o.Has("q", "format") {
		p.Printf("REPOSITORY   TAG   IMAGE ID   CREATED   SIZE\n")
	}
	for _, i := range e.images {
		if _, has := i.labels[label]; only && !has {
			continue
		}
		names := i.tags
		if len(names) == 0 {
			names = []string{"<none>:<none>"}
		}
		for _, t := range names {
			if len(o.Args) > 0 && t != tagged(o.Args[0]) {
				continue
			}
			cut := strings.LastIndex(t, ":")
			row := struct{ Repository, Tag, ID string }{t[:cut], t[cut+1:], i.id[:12]}
			if o.Has("no-trunc") {
				row.ID = "sha256:" + i.id
			}
			switch {
			case o.Has("q"):
				p.Printf("%s\n", row.ID)
			case o.Has("format"):
				if status := write(p, o.Value("format"), row); status != 0 {
					return status
				}
			default:
				p.Printf("%s   %s   %s   2 hours ago   7.12GB\n", row.Repository, row.Tag, row.ID)
			}
		}
	}
	return 0
}

func write(p *sh.Proc, format string, data any) int {
	t, err := template.New("").Parse(format)
	if err == nil {
		err = t.Execute(p.Stdout, data)
	}
	if err != nil {
		fmt.Fprintf(p.Stderr, "template parsing error: %v\n", err)
		return 64
	}
	p.Printf("\n")
	return 0
}

type inspected struct {
	ID       string `json:"Id"`
	RepoTags []string
	Config   struct{ Labels map[string]string }
}

func (e *Engine) inspect(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("f: format: type:")
	if err != nil {
		return p.Usage(125, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range o.Args {
		i := e.find(name)
		if i == nil {
			p.Printf("[]\n")
			fmt.Fprintf(p.Stderr, "Error: No such object: %s\n", name)
			return 1
		}
		about := inspected{ID: "sha256:" + i.id, RepoTags: i.tags}
		about.Config.Labels = i.labels
		if o.Has("f", "format") {
			if status := write(p, o.Value("f", "format"), about); status != 0 {
				return status
			}
			continue
		}
		b, err := json.MarshalIndent([]inspected{about}, "", "    ")
		if err != nil {
			return p.Fail(1, "%v", err)
		}
		p.Printf("%s\n", b)
	}
	return 0
}

func (e *Engine) remove(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("f force no-prune")
	if err != nil {
		return p.Usage(125, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range o.Args {
		i := e.find(name)
		switch {
		case i == nil:
			fmt.Fprintf(p.Stderr, "Error response from daemon: No such image: %s\n", tagged(name))
			return 1
		case i.running > 0 && !o.Has("f", "force"):
			fmt.Fprintf(p.Stderr,
				"Error response from daemon: conflict: unable to remove repository reference \"%s\" (must force) - container is using its referenced "+
					"image %s\n", name, i.id[:12])
			return 1
		}
		p.Printf("Untagged: %s\n", tagged(name))
		i.tags = slices.DeleteFunc(i.tags, func(t string) bool { return t == tagged(name) })
		if len(i.tags) == 0 {
			p.Printf("Deleted: sha256:%s\n", i.id)
			e.images = slices.DeleteFunc(e.images, func(other *image) bool { return other == i })
		}
	}
	return 0
}

// tag implements the command tag.
func (e *Engine) tag(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("")
	if err != nil || len(o.Args) != 2 {
		return p.Usage(125, err)
	}
	e.mu.Lock()
	i := e.find(o.Args[0])
	e.mu.Unlock()
	if i == nil {
		fmt.Fprintf(p.Stderr, "Error response from daemon: No such image: %s\n", tagged(o.Args[0]))
		return 1
	}
	e.add(i, o.Args[1])
	return 0
}

// add tags an image. An image that had the name before keeps no name (Docker documentation, docker image prune: "A dangling
// image is one that isn't tagged").
func (e *Engine) add(i *image, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, other := range e.images {
		other.tags = slices.DeleteFunc(other.tags, func(t string) bool { return t == tagged(name) })
	}
	i.tags = append(i.tags, tagged(name))
	if !slices.Contains(e.images, i) {
		e.images = append(e.images, i)
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// limited returns the memory lock limit of a container. A capability or an unlimited setting removes the limit.
func limited(o sh.Options) int64 {
	const docker = 64 // KiB, the default of the kernel
	if o.Has("privileged") ||
		slices.ContainsFunc(o.Values("cap-add"), func(c string) bool { return strings.TrimPrefix(c, "CAP_") == "IPC_LOCK" }) {
		return -1
	}
	for _, u := range o.Values("ulimit") {
		if v, ok := strings.CutPrefix(u, "memlock="); ok && strings.HasPrefix(v, "-1") {
			return -1
		}
	}
	return docker
}

func (e *Engine) run(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("+rm i t d it net: network: ipc: pid: privileged cap-add: cap-drop: ulimit: entrypoint: e: u: name: v: init")
	if err != nil || len(o.Args) == 0 {
		fmt.Fprintf(p.Stderr, "%s: \"docker run\" requires at least 1 argument. %v\n", p.Name(), err)
		return 125
	}
	name, args := o.Args[0], o.Args[1:]
	e.mu.Lock()
	i := e.find(name)
	if i != nil {
		i.running++
	}
	e.mu.Unlock()
	if i == nil {
		fmt.Fprintf(p.Stderr,
			"Unable to find image '%s' locally\ndocker: Error response from daemon: manifest for %[1]s not found: manifest unknown.\n", tagged(name))
		return 125
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		i.running--
	}()
	if i.entrypoint != "" && !o.Has("entrypoint") {
		p.Printf("%s", i.entrypoint)
	}
	if entrypoint := o.Value("entrypoint"); entrypoint != "" {
		args = append([]string{entrypoint}, args...)
	}
	if len(args) == 0 {
		args = []string{"/bin/bash"}
	}
	child := *p
	child.Args, child.Dir, child.Env = args, "/", containerEnv
	child.Session = &sh.Session{Memlock: limited(o), TTY: o.Has("t", "it")}
	status, err := i.root.container(e, o).Exec(ctx, &child)
	if err != nil {
		fmt.Fprintf(p.Stderr,
			"docker: Error response from daemon: failed to create task for container: exec: \"%s\": executable file not found in $PATH: unknown.\n",
			args[0])
		return 127
	}
	return status
}

var containerEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}

// container returns the system of a container: its root file system with the devices that were passed to it, and with the
// guest's network or none.
func (r *root) container(e *Engine, o sh.Options) *sh.System {
	let := o.Has("privileged")
	verbs := e.Verbs(func(driver string) bool { return let && rdma.HasProvider(r.sys.FS, driver) })
	tool := e.Tool(verbs)
	if network := o.Value("net", "network"); network != "host" {
		tool.Net = alone{}
	}
	sys := &sh.System{FS: r.sys.FS, Now: r.sys.Now, Dash: true, Programs: r.programs(verbs, tool)}
	return sys
}
