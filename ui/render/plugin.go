package render

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// PluginLine is the first line of a monitoring plug-in: "RDMA CRITICAL - HOST-FW-PVRDMA-007 esx-02: ruleset pvrdma is
// off". word is OK, WARNING, CRITICAL or UNKNOWN, whatever its case.
func PluginLine(word string, all []checks.Finding) string {
	return PluginText(word, told(all))
}

// PluginError is the line of a check that could not evaluate anything.
func PluginError(err error) string { return PluginText("UNKNOWN", err.Error()) }

// PluginText is such a line with a given text.
func PluginText(word, said string) string {
	// Monitoring systems take the text after a bar as performance data.
	return "RDMA " + strings.ToUpper(word) + " - " + strings.ReplaceAll(backends.Clean(said), "|", "/")
}

func told(all []checks.Finding) string {
	f := first(all)
	if f == nil {
		return plain.Tally(all) + unread(all)
	}
	n := 0
	for _, o := range all {
		if o.Status == f.Status && !o.Quiet {
			n++
		}
	}
	said := fmt.Sprintf("%s %s: %s", f.ID, f.Target.Name, f.Evidence)
	if n > 1 {
		said += fmt.Sprintf(" (and %d more %s)", n-1, map[checks.Status]string{checks.Fail: "failed", checks.Warn: "warned", checks.Unknown: "unknown"}[f.Status])
	}
	return said
}

// unread returns the names of the links of the chain that the result does not cover.
func unread(all []checks.Finding) string {
	var names []string
	for _, l := range catalogue.Chain(all) {
		if l.Worst == checks.Unknown {
			names = append(names, string(l.Name))
		}
	}
	if names == nil {
		return ""
	}
	return "; not evaluated: " + strings.Join(names, ", ")
}

// first returns the first broken link; findings of rows that are not in the catalogue come after it.
func first(all []checks.Finding) *checks.Finding {
	if f := catalogue.FirstBroken(all); f != nil {
		return f
	}
	for _, s := range []checks.Status{checks.Fail, checks.Warn, checks.Unknown} {
		for i := range all {
			if all[i].Status == s && !all[i].Quiet {
				return &all[i]
			}
		}
	}
	return nil
}
