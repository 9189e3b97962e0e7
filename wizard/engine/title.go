package engine

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// Title says in words what a change does: "set option Net.PVRDMAVmknic to vmk0".
func Title(c plan.Change) string {
	what := words(c)
	switch {
	case c.State:
		return "bring " + what + " to " + c.To.String()
	case c.To.IsAbsent():
		return "remove " + what
	case c.From.IsAbsent():
		return "add " + what + detail(c.To, " ")
	}
	return "set " + what + detail(c.To, " to ")
}

// words names a setting as the field does.
func words(c plan.Change) string {
	switch c.Kind {
	case backends.KindSwitch:
		return "the DVS"
	case backends.KindPortGroup:
		return "the port group"
	case backends.KindMember:
		return "the uplinks on " + c.Name
	case backends.KindHardware:
		return "the hardware version"
	case backends.KindMemory:
		return "the memory reservation"
	case backends.KindAdapter:
		return "the adapter on " + c.Name
	case backends.KindPackages:
		return "the packages " + c.Name
	case backends.KindModules:
		return "the kernel modules " + c.Name
	case backends.KindPersist:
		return "the modules loaded at boot"
	case backends.KindAddress:
		return "the address on " + c.Name
	case backends.KindMemlock:
		return "the memlock limit"
	case backends.KindPort:
		return "the RDMA port on " + c.Name
	case backends.KindFirewall:
		return "the firewall ruleset " + c.Name
	}
	return strings.TrimSpace(string(c.Kind) + " " + c.Name)
}

// detail adds a short value; an object with many fields is not for a title.
func detail(v backends.Value, before string) string {
	s := v.String()
	if len(s) > 40 || strings.Contains(s, ";") {
		return ""
	}
	return before + s
}

func openTitle(b plan.Bracket) string {
	switch b.Kind {
	case backends.BracketVMPower:
		return "shut the VM down"
	case backends.BracketMaintenance, backends.BracketReboot:
		return "enter maintenance mode"
	case backends.BracketSSH:
		return "start the SSH service"
	}
	return "open " + string(b.Kind)
}

func closeTitle(b plan.Bracket) string {
	switch b.Kind {
	case backends.BracketVMPower:
		return "power the VM back as it was"
	case backends.BracketMaintenance:
		return "leave maintenance mode"
	case backends.BracketReboot:
		return "reboot and leave maintenance mode"
	case backends.BracketSSH:
		return "put the SSH service back as it was"
	}
	return "close " + string(b.Kind)
}
