package guest

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/current"
)

const checkContainer = "GST-CONTAINER-030"

// image plans the container image of the answers if it is to be built: MLNX_OFED's libraries in NGC images do not support PVRDMA
// (PVRDMA and vSphere Bitfusion, VMware, 2021, Using PVRDMA in an NGC container).
func (g *guestPart) image() {
	want := g.Answers.Container
	if want.Image == "" {
		return
	}
	if !g.asked {
		if want.Base != "" {
			g.change(backends.KindImage, want.Image, g.until, g.until, "it depends on the container engine of the guest", nil)
		}
		return
	}
	e := g.v.Guest.Engine
	if e == nil {
		g.Object(g.ref, checkContainer, "install one (rdma-setup generate docker-setup prints how), or leave container.image empty", "no container engine "+
			"answers: neither docker, podman nor nerdctl")
		return
	}
	made, there := e.Images[want.Image]
	switch {
	case want.Base == "" && !there:
		g.Object(g.ref, checkContainer, "pull it ("+e.Name+" pull), or name in container.base what to build it from", "%s has no image %s", e.Name, want.Image)
	case want.Base == "":
		// Reported before anything is measured with it. If the image could not be inspected, the measurement shows it.
		if inside, looked := g.v.Guest.Inside(want.Image); looked && !inside.PVRDMA && g.Answers.Mode == answers.PVRDMA {
			g.Object(g.ref, checkContainer, "name it in container.base and another in container.image, which is built then; or build one: rdma-setup generate "+
				"dockerfile --base "+want.Image, "image %s has %s", want.Image, inside)
		}
	case there && made == "":
		g.Object(g.ref, checkContainer, "choose another name in container.image, or remove container.base to use it as it is", "the image %s exists and was not built by rdma-setup", want.Image)
	default:
		text, err := g.Options.Dockerfile(want.Base)
		if err != nil {
			g.Refuse(g.ref, checkContainer, "name another image in container.base", "%v", err)
			return
		}
		if tc := g.appClass(); tc != 0 {
			text += "\n" + "ENV " + strings.Join(backends.ClassVariables(tc, -1), " ") + "\n"
		}
		g.change(backends.KindImage, want.Image, current.Image(g.v.Guest, want.Image), backends.ValueOf(text),
			"MLNX_OFED's libraries in "+want.Base+" do not know PVRDMA; the image is some GB, and building it downloads them", func(c *plan.Change) {
				c.After = append(c.After, g.id(backends.KindPackages, setRDMA))
			})
	}
}
