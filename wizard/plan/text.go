package plan

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// titles are the titles of changes whose texts follow from their kinds: for setting a value, and for removing it if that differs.
// They contain $verb, $target, $name, $place (of an interface with that name) and $to.
var titles = map[backends.Kind]struct{ set, remove string }{
	backends.KindSwitch:            {set: "$verb distributed switch $target"},
	backends.KindPortGroup:         {set: "$verb port group $target"},
	backends.KindVMKNic:            {"create a vmknic with $name", "remove the vmknic with $name"},
	backends.KindPower:             {set: "set power policy to $to"},
	backends.KindComponent:         {set: "install $name $to"},
	backends.KindFirmware:          {set: "set firmware of $name"},
	backends.KindActiveFirmware:    {set: "check that $name runs the firmware of its flash"},
	backends.KindActiveGraphics:    {set: "find GPUs that offer vGPUs"},
	backends.KindActivePassthrough: {set: "find $name passed through"},
	backends.KindActiveVFs:         {set: "find $to VFs on $name"},
	backends.KindHardware:          {set: "upgrade hardware version to $to"},
	backends.KindLatency:           {set: "set latency sensitivity to $to"},
	backends.KindExtra:             {"set $name to $to", "remove $name"},
	backends.KindVGPU:              {"assign $to vGPU $name", "remove its vGPUs $name out"},
	backends.KindDeviceGroup:       {"assign the vendor device group $name", "remove the vendor device group $name"},

	backends.KindNouveau:      {"keep nouveau from the GPU and reboot the guest", "allow nouveau to use GPUs again from the next boot on"},
	backends.KindGPUPersist:   {"set persistence mode of the GPUs, now and at every boot", "restore the persistence mode of the GPUs"},
	backends.KindNICName:      {"keep the name of the interface $place by its MAC", "stop keeping the name of the interface $place"},
	backends.KindPersist:      {"load RDMA modules at every boot", "stop loading RDMA modules at boot"},
	backends.KindMemlock:      {set: "set locked-memory limit to $to"},
	backends.KindTrafficClass: {"mark RDMA traffic on $place with traffic class $to", "stop marking RDMA traffic on $place"},
	backends.KindEnvironment: {"set traffic class $to for applications (UCX, NCCL)",
		"remove the traffic class from the environment of applications"},
	backends.KindRestart: {set: "restart the guest and compare its network"},
	backends.KindPort:    {set: "bring RDMA port up on $place"},
}

// Title describes a change without its target: "enable firewall ruleset pvrdma".
func Title(c Change) string {
	removed := c.To.IsAbsent()
	if t, plain := titles[c.Kind]; plain {
		text := t.set
		if removed {
			text = cmp.Or(t.remove, t.set)
		}
		return os.Expand(text, func(word string) string { return titleWord(c, word) })
	}
	switch c.Kind {
	case backends.KindMember:
		return memberTitle(c, removed)
	case backends.KindOption:
		var v string
		if c.To.Decode(&v) == nil && v == "" {
			return "clear option " + c.Name
		}
		if !c.To.Known() {
			return "set option " + c.Name
		}
		return fmt.Sprintf("set option %s to %s", c.Name, c.To)
	case backends.KindFirewall:
		return map[bool]string{true: "enable", false: "disable"}[c.To == backends.ValueOf(true)] + " firewall ruleset " + c.Name
	case backends.KindPause:
		var p backends.PauseSpec
		if c.To.Decode(&p) == nil && !p.Rx && !p.Tx {
			return "switch global pause off on " + c.Name
		}
		return "set global pause on " + c.Name
	case backends.KindImageComponent:
		return imageTitle(c)
	case backends.KindModuleParams:
		return "set parameters of " + c.Name + parameters(c)
	case backends.KindFirmwareImage:
		return "update the firmware of " + c.Name + " to " + burnVersions(c)
	case backends.KindVFs:
		var v backends.VFSpec
		if c.To.Decode(&v) == nil && !v.Enabled {
			return "switch SR-IOV off on " + c.Name + " in vCenter"
		}
		return fmt.Sprintf("ask vCenter for %d VFs on %s", v.VFs, c.Name)
	case backends.KindGraphics:
		var g backends.GraphicsSpec
		_ = c.To.Decode(&g)
		return "set graphics type to " + g.Default
	case backends.KindPassthrough:
		return map[bool]string{true: "pass through ", false: "return to the host "}[c.To == backends.ValueOf(true)] + c.Name
	case backends.KindMemory:
		return memoryTitle(c)
	case backends.KindCPU:
		if c.To == backends.ValueOf(int64(0)) {
			return "reserve no CPU"
		}
		return fmt.Sprintf("reserve %s MHz of CPU", c.To)
	case backends.KindNested:
		return "switch nested virtualization " + map[bool]string{true: "on", false: "off"}[c.To == backends.ValueOf(true)]
	case backends.KindDevice:
		return deviceTitle(c, removed)
	case backends.KindAdapter:
		return adapterTitle(c, removed)
	}
	return guestTitle(c, removed)
}

func titleWord(c Change, word string) string {
	switch word {
	case "target":
		return c.Target.Name
	case "name":
		return c.Name
	case "place":
		return place(c.Name)
	case "to":
		return c.To.String()
	case "verb":
		switch {
		case c.To.IsAbsent():
			return "remove"
		case c.From.IsAbsent():
			return "create"
		}
		return "change"
	}
	return "$" + word
}

// burnVersions returns the firmware versions that a card may get, by its board id if it is known.
func burnVersions(c Change) string {
	var to backends.FirmwareImage
	if c.To.Known() && c.To.Decode(&to) == nil {
		return to.Version
	}
	var b nic.Burn
	if c.Late.Decode(&b) != nil {
		return c.To.String()
	}
	return strings.Join(backends.Each(slices.Sorted(maps.Keys(b.Files)), func(psid string) string {
		return nic.ImageVersion(b.Files[psid]) + " (PSID " + psid + ")"
	}), " or ")
}

func imageTitle(c Change) string {
	switch image := c.Target.Type == backends.TypeCluster; {
	case image && c.To.IsAbsent():
		return "remove " + c.Name + " from the image"
	case image:
		return fmt.Sprintf("add %s %s to the image", c.Name, c.To)
	case c.To.IsAbsent():
		return "remediate to the image without " + c.Name
	}
	return fmt.Sprintf("remediate to the image with %s %s", c.Name, c.To)
}

func parameters(c Change) string {
	var from, to map[string]string
	if c.From.Decode(&from) != nil || c.To.Decode(&to) != nil {
		return ""
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(to)) {
		if from[k] != to[k] {
			parts = append(parts, k+"="+to[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(from)) {
		if _, kept := to[k]; !kept {
			parts = append(parts, "without "+k)
		}
	}
	if parts == nil {
		return ""
	}
	return ": " + strings.Join(parts, " ")
}

func memberTitle(c Change, removed bool) string {
	if removed {
		return "leave distributed switch " + c.Name
	}
	var m backends.MemberSpec
	if c.To.Decode(&m) != nil {
		return "join distributed switch " + c.Name
	}
	if c.From.IsAbsent() {
		return fmt.Sprintf("join distributed switch %s with %s", c.Name, cmp.Or(strings.Join(m.PNICs, ", "), "no uplink"))
	}
	return fmt.Sprintf("use %s as uplink on %s", cmp.Or(strings.Join(m.PNICs, ", "), "no pNIC"), c.Name)
}

func memoryTitle(c Change) string {
	var m backends.MemorySpec
	switch {
	case c.To.Decode(&m) != nil:
		return "change memory reservation"
	case m.Locked:
		return "reserve all memory"
	}
	return fmt.Sprintf("reserve %d MB of memory", m.ReservationMB)
}

func adapterTitle(c Change, removed bool) string {
	a := backends.AdapterSpec{Type: "RDMA"}
	if removed {
		if c.From.Decode(&a) != nil {
			a.Type = "RDMA"
		}
		return fmt.Sprintf("remove %s adapter from %s", kindOfAdapter(a.Type), c.Name)
	}
	if c.To.Decode(&a) != nil {
		a.Type = "RDMA"
	}
	if c.From.IsAbsent() {
		return fmt.Sprintf("add %s adapter on %s", kindOfAdapter(a.Type), c.Name)
	}
	return fmt.Sprintf("complete %s adapter on %s", kindOfAdapter(a.Type), c.Name)
}

func deviceTitle(c Change, removed bool) string {
	if removed {
		return "take " + c.Name + " out"
	}
	var d backends.DeviceSpec
	if c.To.Decode(&d) != nil {
		return "give it " + c.Name
	}
	return fmt.Sprintf("assign %s (%s DirectPath I/O)", c.Name, d.Backing)
}

func kindOfAdapter(t string) string {
	switch t {
	case "pvrdma":
		return "PVRDMA"
	case "sriov":
		return "SR-IOV"
	}
	return t
}

// OpenTitle describes opening a bracket.
func OpenTitle(b Bracket) string {
	switch b.Kind {
	case backends.BracketVMPower:
		return "shut down"
	case backends.BracketMaintenance:
		return "enter maintenance mode"
	case backends.BracketReboot:
		if b.InMaintenance() {
			return "stay in maintenance mode for a reboot"
		}
		return "enter maintenance mode for a reboot"
	case backends.BracketSSH:
		if b.Proof {
			return "test the SSH login"
		}
		return "start the SSH service"
	}
	return "open " + string(b.Kind)
}

// CloseTitle describes closing a bracket.
func CloseTitle(b Bracket) string {
	switch b.Kind {
	case backends.BracketVMPower:
		if b.Leave == backends.ValueOf("poweredOff") {
			return "leave powered off"
		}
		return "power on"
	case backends.BracketMaintenance:
		return "leave maintenance mode"
	case backends.BracketReboot:
		if b.InMaintenance() {
			return "reboot, wait"
		}
		return "reboot, wait, leave maintenance mode"
	case backends.BracketSSH:
		return "restore the SSH service"
	}
	return "close " + string(b.Kind)
}
