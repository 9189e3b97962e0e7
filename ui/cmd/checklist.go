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

func checkIDs() []string {
	return plain.Mapped(catalogue.Checks(), func(c checks.Check) string { return c.ID })
}
