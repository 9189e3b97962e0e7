package form

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// What each question of mode gpudirect says beside its name.
const (
	aboutCard     = "passthrough: the whole card, one VM a host; sriov: a VF of it on a switch"
	aboutMMIO     = "kb (KB 323402), minimal, guide, or a power of two in GB"
	aboutDriver   = "for guests without one: packages, or the path of its .run file"
	aboutPerftest = "path in the guests of its source; empty: GPU memory only if there"
	aboutBacking  = "fixed: this device; dynamic: one of its make, keeps HA restart"
)

// gpuLines list the GPUs of the chosen hosts: model, whether VMs can have it, and its way to the nearest RDMA card.
func gpuLines(a *answers.Answers, inv *backends.Inventory) []string {
	var out []string
	member := members(a)
	for _, h := range inv.Hosts {
		if !member[h.Name] {
			continue
		}
		if len(h.GPUs) == 0 {
			out = append(out, plain.Clean(h.Name)+": no GPU")
		}
		for _, g := range h.GPUs {
			near, p2p := plain.Nearest(g)
			use := plain.Passthrough(g)
			if g.UsedBy != "" {
				use = "of " + plain.Clean(g.UsedBy)
			}
			out = append(out, fmt.Sprintf("%s %s %s, %s; P2P %s: %s", plain.Clean(h.Name), strings.TrimPrefix(g.PCI, "0000:"), soldAs(plain.Clean(g.Model)), use, p2p, near))
		}
	}
	return out
}

// soldAs is the name under which a card is sold, out of that of its chip: A100 PCIe 80GB of GA100 [A100 PCIe 80GB].
func soldAs(model string) string {
	if _, in, ok := strings.Cut(model, "["); ok {
		return strings.TrimSuffix(in, "]")
	}
	return model
}

// gpuQuestions are those of mode gpudirect, with the paths of their answers.
func gpuQuestions(a *answers.Answers, mmio, driver *string) (list []question, paths []string) {
	return []question{
		{title: "RDMA card in the VM", about: aboutCard, value: &a.GPUDirect.NIC, check: oneOf("passthrough", "sriov")},
		{title: "MMIO window", about: aboutMMIO, value: mmio, check: window},
		{title: "DirectPath devices", about: aboutBacking, value: &a.GPUDirect.Backing, check: oneOf("fixed", "dynamic")},
		{title: "NVIDIA driver", about: aboutDriver, value: driver},
		{title: "perftest with CUDA", about: aboutPerftest, value: &a.GPUDirect.Perftest},
	}, []string{"gpudirect.nic", "gpudirect.mmio", "gpudirect.backing", "gpudirect.driver", "gpudirect.perftest"}
}

func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, strings.TrimSpace(s)) {
			return errors.New("write " + strings.Join(words, " or "))
		}
		return nil
	}
}

// window reads the size of the MMIO window as the answers do.
func window(s string) error {
	var m answers.MMIO
	return m.UnmarshalText([]byte(s))
}

// passedOn tells whether a host has an RDMA card that is passed through: it is no pNIC any more, and none need be chosen.
func passedOn(a *answers.Answers, h *backends.Host) bool {
	return a.WholeCard() && h != nil && slices.ContainsFunc(h.Cards(), func(c backends.PCIDevice) bool { return c.Enabled })
}
