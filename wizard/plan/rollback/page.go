package rollback

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A Page is what a person needs to undo a run without this program.
type Page struct {
	Run, VCenter string
	Complete     bool // made from the journal; otherwise from the plan, before the first change
	Steps        []Step
	Saved        []string // "switch-RDMA-DVS.json: configuration of switch RDMA-DVS and its port groups"
	Missing      []string // what could not be saved, and why
}

// Markdown writes the page by target: VMs and guests first, then hosts, then switches.
func (p Page) Markdown() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Undo run %s manually\n", p.Run)
	say("vCenter: %s\n", p.VCenter)
	say(
		"`rdma-setup rollback %s` does all of this. Use this page only where the program cannot be used. Log in with govc first (GOVC_URL, "+
			"GOVC_USERNAME,", p.Run)
	say("GOVC_PASSWORD). The steps are in the order in which they must be taken; skip those of changes that were never made.")
	if !p.Complete {
		say("\nThis page was written before the first change, from the plan.")
	}
	if len(p.Saved) > 0 {
		say("\n## Backups beside this page\n")
		for _, s := range p.Saved {
			say("- %s", s)
		}
		say(
			"\nAn exported switch is restored with pyVmomi: build a vim.dvs.EntityBackup.Config of each entry of the file (configBlob is " +
				"base64) and call")
		say("content.dvSwitchManager.DVSManagerImportEntity_Task(entries, \"applyToEntitySpecified\").")
	}
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Change.Target.Type == backends.TypeHost }) {
		say("\n%s", plan.OwnBackup)
	}
	if len(p.Missing) > 0 {
		say("\n## Not saved\n")
		for _, s := range p.Missing {
			say("- %s", s)
		}
	}
	steps := slices.Clone(p.Steps)
	slices.SortStableFunc(steps, func(x, y Step) int { return rank(x.Change.Target.Type) - rank(y.Change.Target.Type) })
	done := map[backends.Ref]bool{}
	for _, s := range steps {
		if done[s.Change.Target] {
			continue
		}
		done[s.Change.Target] = true
		say("\n## %s %s", cmp.Or(titles[s.Change.Target.Type], string(s.Change.Target.Type)), s.Change.Target.Name)
		for _, of := range steps {
			if of.Change.Target == s.Change.Target {
				of.write(say)
			}
		}
		console(say, steps, s.Change.Target)
	}
	return b.String()
}

// console says how a guest that has lost its network gets it back at the VM's console, whichever program configures it. Foreign files are
// never changed, so that it is enough to remove those of the run.
func console(say func(string, ...any), steps []Step, guest backends.Ref) {
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.Change.Kind == backends.KindAddress && s.Change.Target == guest }) {
		return
	}
	say(
		"\nIf the guest has lost its network: open the VM's console in the vSphere Client and log in as root. The guest's own files are " +
			"unchanged; remove")
	say("those of this program, which needs no network:\n")
	for _, p := range [][2]string{
		{"netplan", "rm -f /etc/netplan/*rdma-setup-*.yaml && netplan apply"},
		{"NetworkManager", "rm -f /etc/NetworkManager/system-connections/rdma-setup-* && systemctl restart NetworkManager"},
		{"systemd-networkd", "rm -f /etc/systemd/network/*rdma-setup-*.network && systemctl restart systemd-networkd"},
		{"network-scripts", "rm -f $(grep -l rdma-setup /etc/sysconfig/network-scripts/ifcfg-*) && systemctl restart network"},
		{"ifupdown", "rm -f /etc/network/interfaces.d/rdma-setup-* && systemctl restart networking"},
	} {
		say("- %s: `%s`", p[0], p[1])
	}
}

func (s Step) write(say func(string, ...any)) {
	say("\nThe run was to %s.", plan.Title(s.Change))
	if s.Kept != nil && len(s.Kept.Items) > 0 {
		say("\nIn the guest, put back:\n")
		for _, i := range itemsInOrder(s.Kept.Items) {
			text, commands := itemByHand(i)
			if text != "" {
				say("- %s", text)
			}
			for _, c := range commands {
				say("- `%s`", c)
			}
		}
		if slices.ContainsFunc(s.Kept.Items, func(i backends.Item) bool { return i.Kind == backends.ItemUnit }) {
			say("- `sudo systemctl daemon-reload`")
		}
		return
	}
	if s.Text != "" {
		say("%s", s.Text)
	}
	if len(s.Commands) > 0 {
		say("")
		for _, c := range s.Commands {
			say("    %s", c)
		}
	}
}

// rank orders targets: users of something come before it.
func rank(t backends.TargetType) int {
	order := []backends.TargetType{backends.TypeGuest, backends.TypeVM, backends.TypeHost, backends.TypePortGroup}
	if i := slices.Index(order, t); i >= 0 {
		return i
	}
	return len(order)
}

// titles are the headings of targets.
var titles = map[backends.TargetType]string{
	backends.TypeHost: "Host", backends.TypeVM: "VM", backends.TypeGuest: "Guest", backends.TypeSwitch: "Distributed switch",
	backends.TypePortGroup: "Port group",
}
