package rollback

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Step is one recorded setting and how to restore its earlier value manually: a sentence, commands, or both.
type Step struct {
	Change   plan.Change // From is the value to restore
	Kept     *backends.Kept
	Text     string
	Commands []string
}

// ByHand returns for each change how to restore the earlier value without this program, the last change first. kept are the
// recorded items by the id of the change. Flags of govc are those of "govc COMMAND -h", esxcli's those of the "ESXCLI Reference";
// those of firmware tools come from the family of the NIC.
func ByHand(changes []plan.Change, kept map[string]*backends.Kept) []Step {
	var out []Step
	for _, c := range slices.Backward(changes) {
		if c.State {
			continue // a repair, not a setting
		}
		s := Step{Change: c, Kept: kept[c.ID()]}
		switch {
		case c.Irreversible != "":
			s.Text = "It cannot be undone: " + c.Irreversible + "."
		case !c.From.Known():
			s.Text = "The earlier value is read just before the change and is in journal.jsonl: " + c.From.String() + "."
		default:
			s.Text, s.Commands = byHand(c)
		}
		out = append(out, s)
	}
	return out
}

func byHand(c plan.Change) (text string, commands []string) {
	switch c.Target.Type {
	case backends.TypeHost:
		return hostByHand(c)
	case backends.TypeVM:
		return vmByHand(c)
	case backends.TypeGuest:
		return guestByHand(c)
	}
	switch c.Kind {
	case backends.KindSwitch:
		var was backends.SwitchSpec
		if c.From.IsAbsent() {
			return "The switch did not exist. Remove it when no host and no VM uses it any more.",
				[]string{"govc object.destroy \"$(govc find / -type DistributedVirtualSwitch -name " + word(c.Target.Name) + ")\""}
		}
		if c.From.Decode(&was) == nil {
			return fmt.Sprintf("Before: MTU %d, Network I/O Control %t, discovery %q. A version cannot be lowered.", was.MTU, was.NIOC,
					was.Discovery),
				[]string{fmt.Sprintf("govc dvs.change -mtu %d %s", was.MTU, word(c.Target.Name))}
		}
	case backends.KindImageComponent:
		if c.From.IsAbsent() {
			return "In the vSphere Client: cluster " + c.Target.Name + ", Updates, Image, Edit: remove the component " + c.Name +
				", Validate, Save; then remediate the hosts.", nil
		}
		return "In the vSphere Client: cluster " + c.Target.Name + ", Updates, Image, Edit: the component " + c.Name + " had version " +
			c.From.String() + ".", nil
	case backends.KindPortGroup:
		var was backends.PortGroupSpec
		if c.From.IsAbsent() {
			return "The port group did not exist. Remove it when no VM uses it any more.",
				[]string{"govc object.destroy \"$(govc find / -type DistributedVirtualPortgroup -name " + word(c.Target.Name) + ")\""}
		}
		if c.From.Decode(&was) == nil {
			return fmt.Sprintf("In the vSphere Client, under Teaming and failover, set the active uplinks to %s.",
					cmp.Or(strings.Join(was.Active, ", "), "those of the switch")),
				[]string{fmt.Sprintf("govc dvs.portgroup.change -vlan %d %s", was.VLAN, word(c.Target.Name))}
		}
	}
	return before(c), nil
}

func before(c plan.Change) string {
	if c.From.IsAbsent() {
		return "It did not exist before. Remove it."
	}
	return "Set it back to: " + c.From.String()
}

func hostByHand(c plan.Change) (string, []string) {
	host := c.Target.Name
	esxcli := func(format string, args ...any) []string {
		return []string{"govc host.esxcli -host " + word(host) + " " + fmt.Sprintf(format, args...)}
	}
	const reboot = "It takes effect at the next reboot of the host."
	var text string
	var on bool
	var params map[string]string
	switch c.Kind {
	case backends.KindMember:
		var was backends.MemberSpec
		if c.From.IsAbsent() {
			return "The host was no member of " + c.Name +
					". In the vSphere Client: the switch, Hosts, Remove from distributed switch; or with PowerCLI:",
				[]string{fmt.Sprintf("Remove-VDSwitchVMHost -VDSwitch '%s' -VMHost '%s' -Confirm:$false", quote(c.Name), quote(host))}
		}
		if c.From.Decode(&was) == nil {
			return fmt.Sprintf("In the vSphere Client: the switch %s, Add and manage hosts, Manage host networking, %s: its uplinks were %s.",
				c.Name, host, cmp.Or(strings.Join(was.PNICs, ", "), "none")), nil
		}
	case backends.KindVMKNic:
		if c.From.IsAbsent() {
			return "There was no vmknic with this address. Find its name by the address, then remove it:",
				append(esxcli("network ip interface ipv4 get"), esxcli("network ip interface remove --interface-name vmkN")...)
		}
	case backends.KindOption:
		path := word("/" + strings.ReplaceAll(c.Name, ".", "/"))
		var number int64
		switch {
		case c.From.Decode(&text) == nil && text == "":
			return "The option was empty, which is its default.", esxcli("system settings advanced set -o %s -d true", path)
		case c.From.Decode(&text) == nil:
			return "", esxcli("system settings advanced set -o %s -s %s", path, word(text))
		case c.From.Decode(&number) == nil:
			return "", esxcli("system settings advanced set -o %s -i %d", path, number)
		}
	case backends.KindFirewall:
		if c.From.Decode(&on) == nil {
			return "", esxcli("network firewall ruleset set -r %s -e %t", word(c.Name), on)
		}
	case backends.KindPower:
		if c.From.Decode(&text) == nil {
			return fmt.Sprintf("The power policy was %q. In the vSphere Client: the host, Configure, Hardware, Overview, Power Management.", text),
				nil
		}
	case backends.KindComponent:
		if c.From.IsAbsent() {
			return "The component was not installed. " + reboot, esxcli("software vib remove -n %s", word(c.Name))
		}
		if c.From.Decode(&text) == nil {
			return fmt.Sprintf("Version %s was installed: install it again from its depot (FILE). %s", text, reboot),
				esxcli("software vib install -d FILE -n %s", word(c.Name))
		}
	case backends.KindImageComponent:
		return "The component " + c.Name +
			" came with the image of the cluster. In the vSphere Client: the cluster, Updates, Image, then remediate this host. " + reboot, nil
	case backends.KindModuleParams:
		if c.From.Decode(&params) == nil {
			return reboot, esxcli("system module parameters set -m %s -p %s", word(c.Name), word(pairs(params)))
		}
	case backends.KindFirmware:
		if c.From.Decode(&params) == nil {
			return "On the host itself, with its SSH service started. " + reboot,
				[]string{"ssh root@" + word(host) + " " + nic.FirmwareCommand(word(c.Name), params)}
		}
	case backends.KindVFs:
		var was backends.VFSpec
		if c.From.Decode(&was) == nil {
			return fmt.Sprintf(
				"In the vSphere Client: the host, Configure, Networking, Physical adapters, the adapter at %s, Edit, SR-IOV: it was %s. %s", c.Name,
				map[bool]string{true: fmt.Sprintf("enabled with %d VFs", was.VFs), false: "disabled"}[was.Enabled], reboot), nil
		}
	case backends.KindPause:
		var was backends.PauseSpec
		if c.From.Decode(&was) == nil {
			return "", esxcli("network nic pauseParams set -n %s -r %t -t %t", word(c.Name), was.Rx, was.Tx)
		}
	case backends.KindGraphics:
		var was backends.GraphicsSpec
		if c.From.Decode(&was) == nil {
			return fmt.Sprintf("In the vSphere Client: the host, Configure, Hardware, Graphics: the default graphics type was %s. %s", was.Default,
				reboot), nil
		}
	case backends.KindPassthrough:
		if c.From.Decode(&on) == nil {
			return "ESXi 7.0 and later; before, in the vSphere Client: the host, Configure, Hardware, PCI Devices. It may take effect only at the " +
					"next reboot.",
				esxcli("hardware pci pcipassthru set -d %s -e %t -a", word(c.Name), on)
		}
	}
	return before(c), nil
}

// pairs formats parameters for ESXi: "a=1 b=2".
func pairs(m map[string]string) string {
	return strings.Join(backends.Each(slices.Sorted(maps.Keys(m)), func(k string) string { return k + "=" + m[k] }), " ")
}

func word(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func quote(s string) string { return strings.ReplaceAll(s, "'", "''") }
