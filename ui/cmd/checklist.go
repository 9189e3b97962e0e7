package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

type checkRow struct {
	ID       string         `json:"id"`
	Scope    checks.Scope   `json:"scope"`
	Modes    []answers.Mode `json:"modes"`
	Quick    bool           `json:"quick"`
	Criteria string         `json:"criteria"`
	Remedy   string         `json:"remedy"`
	Source   string         `json:"source"`
	Fix      checks.Fix     `json:"fix"`
}

func rowOf(c checks.Check) checkRow {
	modes := c.Modes
	if len(modes) == 0 {
		modes = []answers.Mode{answers.PVRDMA, answers.SRIOV, answers.GPUDirect}
	}
	return checkRow{c.ID, c.Scope, modes, c.Quick, c.Criteria, c.Remedy, c.Source, c.Fix}
}

func listChecks(e *console.Env, output string) error {
	rows := plain.Mapped(catalogue.Checks(), rowOf)
	if output == "json" {
		return plain.WriteJSON(e.Stdout, map[string]any{"checks": rows})
	}
	if output != "text" {
		return console.Usage("-o text or -o json", "the list of checks cannot be printed as %s", output)
	}
	return console.Page(e, func(w io.Writer) error {
		for _, r := range rows {
			if _, err := fmt.Fprintf(w, "%-26s %s\n", r.ID, r.Criteria); err != nil {
				return err
			}
		}
		return nil
	})
}

func knownCheck(id string) bool { return slices.Contains(checkIDs(), id) }

// nearestCheck is the hint for an unknown id: the one that was probably meant.
func nearestCheck(id string) string {
	return console.Meant(strings.ToUpper(id), checkIDs(), "%s? rdma-setup check --list shows all", "list them with: rdma-setup check --list")
}

func noSuchCheck(id string) error {
	if err := console.Removed("check " + id); err != nil {
		return err
	}
	return console.Usage(nearestCheck(id), "there is no check %q", id)
}

func checkIDs() []string {
	return plain.Mapped(catalogue.Checks(), func(c checks.Check) string { return c.ID })
}

// An explained is the documentation of one check.
type explained struct {
	checkRow
	Link    checks.LinkName `json:"link"`
	Read    string          `json:"read"`     // how its facts are read
	RestsOn []string        `json:"rests_on"` // checks that it depends on
	Under   []string        `json:"followed_by"`
}

// explainCheck returns the criteria, reasons, remedy and source of a check, and how it is read.
func explainCheck(e *console.Env, id, output string) error {
	all := catalogue.Checks()
	i := slices.IndexFunc(all, func(c checks.Check) bool { return c.ID == id })
	if i < 0 {
		return noSuchCheck(id)
	}
	c := all[i]
	x := explained{checkRow: rowOf(c), Link: c.Link, Read: howRead(c), RestsOn: []string{}, Under: []string{}}
	on, under := catalogue.RestsOn(id)
	x.RestsOn, x.Under = append(x.RestsOn, on...), append(x.Under, under...)
	switch output {
	case "json":
		return plain.WriteJSON(e.Stdout, x)
	case "text":
	default:
		return console.Usage("-o text or -o json", "a check cannot be explained as %s", output)
	}
	modes := plain.Mapped(x.Modes, func(m answers.Mode) string { return string(m) })
	pass, rest, _ := strings.Cut(c.Criteria, " / ")
	warn, fail, _ := strings.Cut(rest, " / ")
	for _, l := range [][2]string{
		{"check", x.ID}, {"looks at", string(c.Scope) + ", link " + string(c.Link)}, {"modes", strings.Join(modes, ", ")},
		{"pass", pass}, {"warn", warn}, {"fail", fail}, {"read", x.Read}, {"remedy", c.Remedy}, {"fix", howFixed(c)}, {"source", c.Source},
		{"rests on", strings.Join(x.RestsOn, ", ")}, {"followed by", strings.Join(x.Under, ", ")},
	} {
		if l[1] != "" && l[1] != "-" {
			fmt.Fprintf(e.Stdout, "%-12s %s\n", l[0], l[1])
		}
	}
	return nil
}

func howRead(c checks.Check) string {
	switch {
	case c.Run == nil:
		return "cannot be detected: " + c.NoChannel
	case c.Scope == checks.Guest:
		return "in the guest, over SSH"
	case c.Scope == checks.Pair:
		return "between guests or hosts; tests that load the fabric run only with check --pairs"
	case c.Quick && !c.HostCall:
		return "from vCenter's inventory, also in check --quick"
	case c.Scope == checks.Host:
		return "from the host, with one call each, in the full check"
	}
	return "from vCenter and the hosts, in the full check"
}

func howFixed(c checks.Check) string {
	return map[checks.Fix]string{
		checks.Automatic: "rdma-setup apply or check --fix, where the plan for the site has such a change",
		checks.Reboot:    "needs a host reboot or a VM power cycle", checks.Manual: "by hand",
	}[c.Fix]
}
