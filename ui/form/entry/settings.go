package entry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A Question asks for one value of the answers. The page of the screen and the plain questions are both made from it.
type Question struct {
	Title, About string
	Path         string                                      // of the value
	Text         func(a *answers.Answers) string             // the value as text
	Set          func(a *answers.Answers, text string) error // stores a text, if it has the right form
	Check        func(a *answers.Answers) error              // compares a stored value with the inventory; nil if there is nothing to compare
	Offers       func(a *answers.Answers) []Offer            // values to choose from; nil if there are none
	Only         bool                                        // no other value than the offers is valid
}

// Wrong returns what is wrong with a text as the value of these answers, which are not changed.
func (q Question) Wrong(a *answers.Answers, text string) error {
	try := Copied(a)
	if q.Only {
		if err := OneOf(Values(q.Offers(try))...)(text); err != nil {
			return err
		}
	}
	if err := q.Set(try, text); err != nil {
		return err
	}
	if err := Problem(try, q.Path); err != nil || q.Check == nil {
		return err
	}
	return q.Check(try)
}

// Copied returns a copy of answers in which a Question may store values.
func Copied(a *answers.Answers) *answers.Answers {
	c := *a
	c.Rails = slices.Clone(a.Rails)
	return &c
}

// Settings are the questions about the switch and the other settings of the mode. Some depend on earlier answers: whether there is a
// switch, on how the card is given to a VM.
func Settings(a *answers.Answers, inv *backends.Inventory) []Question {
	var all []Question
	if a.Mode == answers.GPUDirect {
		all = gpuSettings()
	}
	if !a.WholeCard() {
		all = append(all,
			word("Distributed switch", "created if it does not exist; refused if it carries other traffic", "switch.name",
				func(a *answers.Answers) *string { return &a.Switch.Name }, func(a *answers.Answers) []Offer { return Switches(a, inv) }),
			word("Port group", "where the RDMA adapters of the VMs are connected", "switch.portgroup",
				func(a *answers.Answers) *string { return &a.Switch.PortGroup },
				func(a *answers.Answers) []Offer { return PortGroups(a.Switch.Name, inv) }))
	}
	about := "physical switch ports need 9216; a change flaps uplinks (KB 419088)"
	if a.WholeCard() {
		about = "of the guest's interface; physical switch ports need 9216"
	}
	mtu := number("MTU", about, "switch.mtu", func(a *answers.Answers) *int { return &a.Switch.MTU })
	mtu.Check = func(a *answers.Answers) error {
		if a.WholeCard() {
			return nil
		}
		return SwitchMTU(inv, a.Switch.Name, a.Switch.MTU)
	}
	all = append(all, mtu)
	switch {
	case a.WholeCard():
	case a.VFs():
		all = append(all, vlan())
		all = append(all, vfSettings(a)...)
	default:
		if all = append(all, vlan()); a.PVRDMA.VMKNic.Create == nil { // otherwise it is created, as the answers file says
			vmk := Question{Title: "vmknic for PVRDMA", About: "control plane between hosts (Net.PVRDMAVmknic, TCP 28250 to 28761)",
				Path:   "pvrdma.vmknic",
				Text:   func(a *answers.Answers) string { return a.PVRDMA.VMKNic.Name },
				Set:    func(a *answers.Answers, s string) error { a.PVRDMA.VMKNic.Name = strings.TrimSpace(s); return nil },
				Check:  func(a *answers.Answers) error { return VMKNic(inv, a)(a.PVRDMA.VMKNic.Name) },
				Offers: func(a *answers.Answers) []Offer { return VMKNics(a, inv) }}
			all = append(all, vmk)
		}
	}
	for i := 1; i < len(a.Rails); i++ {
		all = append(all, Question{Title: "Network of " + a.Rails[i].Name, About: AboutNetwork, Path: fmt.Sprintf("rails[%d].network", i),
			Text: func(a *answers.Answers) string { return NetworkText(a.Rails[i]) },
			Set:  func(a *answers.Answers, s string) error { return SetNetwork(a, i, s) }})
	}
	return all
}

func vlan() Question {
	return number("VLAN", "0: untagged", "switch.vlan", func(a *answers.Answers) *int { return &a.Switch.VLAN })
}

// number asks for a whole number; the answers know its range.
func number(title, about, path string, at func(*answers.Answers) *int) Question {
	return Question{Title: title, About: about, Path: path,
		Text: func(a *answers.Answers) string { return strconv.Itoa(*at(a)) },
		Set: func(a *answers.Answers, s string) error {
			n, err := strconv.Atoi(strings.TrimSpace(s))
			if err != nil {
				return fmt.Errorf("expected a number such as %d", *at(a)) // the one before
			}
			*at(a) = n
			return nil
		}}
}

// word asks for a name that must not be empty.
func word(title, about, path string, at func(*answers.Answers) *string, offers func(*answers.Answers) []Offer) Question {
	return Question{Title: title, About: about, Path: path, Offers: offers,
		Text: func(a *answers.Answers) string { return *at(a) },
		Set: func(a *answers.Answers, s string) error {
			*at(a) = strings.TrimSpace(s)
			return NotEmpty("a name")(s)
		}}
}

// choice asks for one of a few values.
func choice(title, about, path string, at func(*answers.Answers) *string, offers []Offer) Question {
	return Question{Title: title, About: about, Path: path, Only: true, Offers: func(*answers.Answers) []Offer { return offers },
		Text: func(a *answers.Answers) string { return *at(a) },
		Set:  func(a *answers.Answers, s string) error { *at(a) = strings.TrimSpace(s); return nil }}
}

// gpuSettings are the questions of mode gpudirect, the card first: what follows depends on it.
func gpuSettings() []Question {
	return []Question{
		choice("RDMA card in the VM", "passthrough: the whole card for one VM per host; sriov: a VF per VM", "gpudirect.nic",
			func(a *answers.Answers) *string { return &a.GPUDirect.NIC },
			[]Offer{{"passthrough", "the whole card for one VM per host"}, {"sriov", "a VF for each VM"}}),
		{Title: "MMIO window", About: "kb (KB 323402), minimal, guide, or a power of two in GB", Path: "gpudirect.mmio",
			Text: func(a *answers.Answers) string { return string(a.GPUDirect.MMIO) },
			Set: func(a *answers.Answers, s string) error {
				return a.GPUDirect.MMIO.UnmarshalText([]byte(strings.TrimSpace(s)))
			},
			Offers: func(*answers.Answers) []Offer {
				return []Offer{{"kb", "by Broadcom KB 323402"}, {"minimal", "the smallest window that holds the BARs"},
					{"guide", "by the GPUDirect guide: too small for many cards"}}
			}},
		choice("DirectPath devices", "fixed: this device; dynamic: any of the same model, keeps HA restart", "gpudirect.backing",
			func(a *answers.Answers) *string { return &a.GPUDirect.Backing },
			[]Offer{{"fixed", "this device"}, {"dynamic", "any device of the same model; keeps HA restart"}}),
		{Title: "NVIDIA driver", About: "if a guest has none: packages, or the path of its .run file", Path: "gpudirect.driver",
			Text: func(a *answers.Answers) string { return strings.Join(a.GPUDirect.Driver, ", ") },
			Set:  func(a *answers.Answers, s string) error { a.GPUDirect.Driver = Components(s); return nil }},
		{Title: "perftest with CUDA", About: "path of its source in the guests; empty: use it only if installed", Path: "gpudirect.perftest",
			Text: func(a *answers.Answers) string { return a.GPUDirect.Perftest },
			Set:  func(a *answers.Answers, s string) error { a.GPUDirect.Perftest = strings.TrimSpace(s); return nil }},
	}
}

// vfSettings are the questions where VMs get VFs.
func vfSettings(a *answers.Answers) []Question {
	all := []Question{
		number("VFs", "VFs of the chosen pNIC on each host: one for each VM, at most 127", "sriov.vfs",
			func(a *answers.Answers) *int { return &a.SRIOV.VFs }),
		{Title: "Components", About: "MFT and NMST, if a host lacks them: /vmfs/volumes/DATASTORE/FILE.vib, ..", Path: "sriov.components",
			Text: func(a *answers.Answers) string { return strings.Join(a.SRIOV.Components, ", ") },
			Set:  func(a *answers.Answers, s string) error { a.SRIOV.Components = Components(s); return nil }},
		{Title: "Account of the ESXi shell", About: "for card firmware over SSH, if needed; key or RDMA_SETUP_ESXI_PASSWORD", Path: "esxi.user",
			Text: func(a *answers.Answers) string { return a.ESXi.User },
			Set:  func(a *answers.Answers, s string) error { a.ESXi.User = strings.TrimSpace(s); return ShellUser(s) }},
		{Title: "Tuning", About: "none, or any of cpu (reserved), latency (high), numa (node of the pNIC)", Path: "tuning",
			Text:   func(a *answers.Answers) string { return TuningWords(a.Tuning) },
			Set:    func(a *answers.Answers, s string) (err error) { a.Tuning, err = TuningOf(s); return err },
			Offers: func(*answers.Answers) []Offer { return tunings }},
	}
	if a.Mode == answers.SRIOV && a.QoS.Lossless == answers.LosslessPFC { // the hosts get PFC, which needs PFC on the switch
		all = append(all, Question{Title: "Lossless switch", About: "yes once PFC, DSCP and ECN are set there; this cannot be detected",
			Path: "confirmed.switch_pfc", Only: true,
			Text: func(a *answers.Answers) string { return plain.YesNo(a.Confirmed.SwitchPFC) },
			Set: func(a *answers.Answers, s string) error {
				a.Confirmed.SwitchPFC = strings.TrimSpace(s) == "yes"
				return nil
			},
			Offers: func(*answers.Answers) []Offer {
				return []Offer{{"no", "not set, or not known"}, {"yes", "PFC, DSCP and ECN are set on the physical switch"}}
			}})
	}
	return all
}

// tunings are ways to tune a VM.
var tunings = []Offer{{"none", ""}, {"cpu", "CPU reserved"}, {"latency", "latency sensitivity high"},
	{"numa", "on the NUMA node of the pNIC"},
	{"cpu, latency, numa", "all of them"}}

// Asked is the question in one line, for plain questions.
func (q Question) Asked() string {
	if q.About == "" {
		return q.Title
	}
	return q.Title + ", " + q.About
}
