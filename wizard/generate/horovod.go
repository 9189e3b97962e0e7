package generate

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
)

// A Horovod is a script that runs Horovod's benchmark in containers in the guests, as at the end of the guide (Reference
// Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7, NVIDIA/Mellanox, Deploy and
// Run a Horovod Framework: the image, and VGG16), and removes the containers again.
type Horovod struct {
	Hosts []netip.Addr // of the guests; the first one runs the script
	Image string       // with Horovod, an SSH server and its examples
	GPUs  int          // ranks for each guest
	Port  int          // of the containers' SSH servers, which share the guests' network; 0: 12345
	Model string       // "": VGG16
	Net   NCCL
}

// Check returns an error for settings that cannot be run.
func (h Horovod) Check() error {
	seen := map[netip.Addr]bool{}
	for _, a := range h.Hosts {
		if !a.Is4() || seen[a] {
			return fmt.Errorf("%s is not an IPv4 address, or appears twice", a)
		}
		seen[a] = true
	}
	switch {
	case len(h.Hosts) < 2:
		return fmt.Errorf("%d guests: Horovod over a network needs two", len(h.Hosts))
	case !image.MatchString(h.Image):
		return fmt.Errorf("%q is not a container image", h.Image)
	case h.GPUs < 1 || h.GPUs > 16:
		return fmt.Errorf("%d GPUs for each guest: expected 1 to 16", h.GPUs)
	case h.Port < 0 || h.Port > 65535:
		return fmt.Errorf("%d is not a port", h.Port)
	case h.Model != "" && !deviceName.MatchString(h.Model):
		return fmt.Errorf("%q is not a valid model name", h.Model)
	}
	return h.Net.Check()
}

// Script writes a POSIX shell script.
func (h Horovod) Script(o Origin) (string, error) {
	if err := h.Check(); err != nil {
		return "", err
	}
	var hosts, slots, env []string
	for _, a := range h.Hosts {
		hosts = append(hosts, a.String())
		slots = append(slots, a.String()+":"+strconv.Itoa(h.GPUs))
	}
	for _, v := range h.Net.Variables(false) {
		env = append(env, "-e "+v.Name+"="+v.Value)
	}
	transport, proof := h.Net.proof()
	return "#!/bin/sh\n" + o.Comment("#") + strings.NewReplacer(
		"@HOSTS@", strings.Join(hosts, " "), "@SLOTS@", strings.Join(slots, ","), "@RANKS@", strconv.Itoa(h.GPUs*len(h.Hosts)), "@IMAGE@",
		h.Image,
		"@ENV@", strings.Join(env, " "), "@PORT@", strconv.Itoa(cmp.Or(h.Port, 12345)), "@MODEL@", cmp.Or(h.Model, "VGG16"), "@TRANSPORT@",
		transport, "@PROOF@", proof,
	).Replace(assets.Template("horovod.sh")), nil
}
