package guest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// image builds container images: KindImage. Each has the Dockerfile it was built from as a label, so the guest itself shows
// whether an image is as requested.
type image struct{ g *Guests }

const imageLabel = "rdma-setup.dockerfile" // its value is in base64

// engineScript prints the first container engine that answers, its images, and the labels of those that this program built. It
// also inspects the named images.
func engineScript(inspect []string) string {
	return script("engine.sh", append([]string{imageLabel, assets.Script("libraries.sh") + "echo looked"}, inspect...)...)
}

// engine parses the output of engineScript, nil if no engine answers.
func (f facts) engine() *backends.Engine {
	var e *backends.Engine
	var image string // the image that is being inspected
	var inside []string
	for l := range strings.Lines(f["engine"]) {
		word, rest, _ := strings.Cut(strings.TrimSpace(l), " ")
		switch {
		case word == "engine":
			e = &backends.Engine{Name: rest, Images: map[string]string{}}
		case e == nil:
		case word == "looking":
			image, inside = bareImage(rest), nil
		case word == "inside" && rest == "looked": // an interrupted script printed only a part
			if e.Inside == nil {
				e.Inside = map[string]backends.Libraries{}
			}
			e.Inside[image] = librariesOf(inside)
		case word == "inside":
			inside = append(inside, rest)
		case word == "image" && !strings.Contains(rest, "<none>"):
			e.Images[bareImage(rest)] = ""
		case word == "built":
			w := strings.Fields(rest)
			if len(w) == 0 {
				continue
			}
			text, err := base64.StdEncoding.DecodeString(w[0])
			if err != nil {
				continue
			}
			for _, name := range w[1:] {
				e.Images[bareImage(name)] = string(text)
			}
		}
	}
	return e
}

// bareImage removes the prefix for an engine's own registry: Podman localhost/, Docker docker.io/library/.
func bareImage(name string) string {
	name = strings.TrimPrefix(name, "localhost/")
	return strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/library/"), "docker.io/")
}

func (i image) engine(ctx context.Context, vm string) (*backends.Engine, error) {
	out, err := i.g.ask(ctx, vm, "ask the container engine", ssh.Command{Script: section("engine", engineScript(nil)), Limit: time.Minute,
		MaxOutput: 8 << 20})
	return sections(out).engine(), err
}

// Read returns the Dockerfile that the image was built from, "" for an image built by someone else.
func (i image) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	e, err := i.engine(ctx, s.Target.Name)
	if err != nil || e == nil {
		return backends.Absent, err
	}
	text, there := e.Images[s.Name]
	if !there {
		return backends.Absent, nil
	}
	return backends.ValueOf(text), nil
}

// buildTime is the limit for fetching and building an image of several GB.
const buildTime = time.Hour

// Set builds the image, or removes it. What a build has fetched stays in the engine's cache.
func (i image) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	vm := s.Target.Name
	e, err := i.engine(ctx, vm)
	if err != nil {
		return err
	}
	if e == nil {
		return backends.Permanentf(label(vm), "Start it: systemctl start docker", "no container engine answers")
	}
	if to.IsAbsent() {
		if _, there := e.Images[s.Name]; !there {
			return nil
		}
		_, err := i.g.root(ctx, vm, "remove image "+s.Name, ssh.Command{Script: e.Name + " rmi " + ssh.Quote(s.Name), Limit: 5 * time.Minute})
		return err
	}
	var text string
	if err := to.Decode(&text); err != nil {
		return err
	}
	if made, there := e.Images[s.Name]; there && made == "" {
		return backends.Refusedf(label(vm), "Choose another name in container.image.",
			"image %s exists, but was not built by rdma-setup", s.Name)
	}
	if e.Images[s.Name] == text {
		return nil
	}
	b64 := base64.StdEncoding.EncodeToString([]byte(text))
	progress.Report(5)
	_, err = i.g.change(ctx, vm, step{what: "build image " + s.Name, keep: true, Command: ssh.Command{Limit: buildTime, MaxOutput: 8 << 20,
		Script: script("image-build.sh", e.Name, imageLabel, s.Name, b64)}})
	return err
}

// itemImage is a container image; state: its id.
const itemImage backends.ItemKind = "image"

// Keep records which image has the name. A build moves the name to the new image, and the engine keeps the old one without a name
// (docker image prune, "dangling images").
func (i image) Keep(ctx context.Context, s backends.Setting, _ backends.Value) (backends.Kept, error) {
	item, err := i.item(ctx, s)
	return backends.Kept{Items: []backends.Item{item}}, err
}

// Observe returns which image has the name now.
func (i image) Observe(ctx context.Context, s backends.Setting, _ backends.Kept) (backends.Kept, error) {
	return i.Keep(ctx, s, backends.Absent)
}

func (i image) item(ctx context.Context, s backends.Setting) (backends.Item, error) {
	item := backends.Item{Kind: itemImage, Name: s.Name}
	e, err := i.engine(ctx, s.Target.Name)
	if err != nil || e == nil {
		return item, err
	}
	if _, there := e.Images[s.Name]; !there {
		return item, nil
	}
	out, err := i.g.ask(ctx, s.Target.Name, "ask for the id of "+s.Name,
		ssh.Command{Script: e.Name + " images -q --no-trunc " + ssh.Quote(s.Name), Limit: time.Minute})
	if id := strings.Fields(out); len(id) > 0 {
		item.State = backends.ValueOf(id[0])
	}
	return item, err
}

// imageGone is the exit code of image-back.sh if the engine no longer has the image.
const imageGone = 44

// Restore returns the name to the image that had it, and removes the one that was built; if there was none before, the name is
// removed. An image that was pruned in the meantime cannot be restored: a new build from the same Dockerfile is a different
// image.
func (i image) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, progress backends.Progress) error {
	vm, was := s.Target.Name, kept.Item(itemImage, s.Name)
	if was == nil {
		return nil
	}
	e, err := i.engine(ctx, vm)
	if err != nil {
		return err
	}
	var id string
	if was.State.IsAbsent() {
		if e == nil {
			return nil // the engine and its images no longer exist
		}
		return i.Set(ctx, s, backends.Absent, progress)
	} else if err := was.State.Decode(&id); err != nil {
		return badKept(vm, err)
	}
	if e == nil {
		return backends.Permanentf(label(vm), "Start it: systemctl start docker", "no container engine answers")
	}
	what := "give the name " + s.Name + " back"
	r, err := i.g.step(ctx, vm, step{what: what, keep: true, Command: ssh.Command{Script: script("image-back.sh", e.Name, id, s.Name),
		Limit: 5 * time.Minute}})
	switch {
	case err != nil:
		return err
	case r.ExitCode == imageGone:
		return backends.Permanentf(label(vm),
			"Load or build the previous image, then run rdma-setup rollback again. To keep the image of this run, add --on-conflict keep.",
			"%s: %w", what, backends.Unobtainable{Kind: itemImage, Names: []string{s.Name}, Said: "the image " + id + " was removed from " + e.Name})
	case r.ExitCode != 0:
		return failed(vm, what, r)
	}
	return nil
}

// containerScript inspects the running containers that have RDMA devices or GPUs: whether MLNX_OFED is installed, and whether the
// verbs library finds devices (PVRDMA and vSphere Bitfusion, VMware, 2021, Using PVRDMA in an NGC container).
func containerScript() string {
	return script("containers.sh", "ls -d /dev/infiniband/uverbs* && echo devices\n"+assets.Script("libraries.sh")+"ibv_devinfo -l")
}

// inspected is the part of an engine's inspect output on which Docker, Podman and nerdctl agree.
type inspected struct {
	ID         string `json:"Id"`
	Name       string
	HostConfig struct {
		NetworkMode    string
		Privileged     bool
		CapAdd         []string
		Runtime        string
		DeviceRequests []json.RawMessage
	}
}

// containers parses the output of containerScript: nil if an engine could not be queried, empty if no container uses RDMA or
// GPUs.
func (f facts) containers() []backends.Container {
	text, ok := strings.CutPrefix(f["containers"], "read\n")
	if !ok || strings.Contains("\n"+text, "\n@failed ") {
		return nil
	}
	out := []backends.Container{}
	seen := map[string]bool{}
	for part := range strings.SplitSeq("\n"+text, "\n@container ") {
		_, rest, _ := strings.Cut(part, "\n")
		about, inside, ok := strings.Cut(rest, "\n@inside\n")
		var all []inspected
		if !ok || json.Unmarshal([]byte(about), &all) != nil || len(all) != 1 || seen[all[0].ID] {
			continue // podman also provides a docker command: count it once
		}
		i := all[0]
		seen[i.ID] = true
		lines := strings.Split(inside, "\n")
		c := backends.Container{
			Name: strings.TrimPrefix(i.Name, "/"), HostNet: i.HostConfig.NetworkMode == "host",
			Devices: slices.Contains(lines, "devices"), Libraries: librariesOf(lines), Verbs: verbsDevices(lines),
			IPCLock: i.HostConfig.Privileged || slices.ContainsFunc(i.HostConfig.CapAdd, func(c string) bool {
				c = strings.TrimPrefix(strings.ToUpper(c), "CAP_")
				return c == "IPC_LOCK" || c == "ALL"
			}),
		}
		gpu := i.HostConfig.Runtime == "nvidia" || len(i.HostConfig.DeviceRequests) > 0
		if c.Devices || c.MOFED || c.Verbs > 0 || gpu {
			out = append(out, c)
		}
	}
	return out
}

// librariesOf parses the output of libraries.sh among other lines. Versions of MLNX_OFED's packages contain mlnx.
func librariesOf(lines []string) (l backends.Libraries) {
	for _, line := range lines {
		if v, is := strings.CutPrefix(line, "libibverbs "); is {
			l.Version = strings.TrimSpace(v)
		}
	}
	l.PVRDMA = slices.Contains(lines, "pvrdma")
	l.MOFED = strings.Contains(strings.ToLower(l.Version), "mlnx") || l.Version == "" && slices.Contains(lines, "mofed")
	return l
}

// verbsDevices parses "1 HCA found:" of ibv_devinfo -l.
func verbsDevices(lines []string) int {
	for _, l := range lines {
		if w := strings.Fields(l); len(w) >= 3 && strings.HasPrefix(w[1], "HCA") && strings.HasPrefix(w[2], "found") {
			n, _ := strconv.Atoi(w[0]) // "No HCAs found" means none
			return n
		}
	}
	return 0
}
