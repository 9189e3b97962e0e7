package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// The topic about commands is generated from them; assets/docs/cli.md is the same text, which a test checks.
const (
	cliTopic    = "cli"
	cliTitle    = "Commands and flags"
	checksTopic = "checks"
)

const cliIntro = `# Commands and flags

` + "`" + `rdma-setup COMMAND --help` + "`" + ` prints this for one command; ` + "`" + `rdma-setup help global-flags` + "`" + ` prints the flags that every command has. Exit codes: see
[operations](operations.md#exit-codes). Tab completion for bash, zsh and fish comes with the packages (` + "`" + `rdma-setup completion --help` + "`" + `
for other ways); it knows runs, checks, tools, and the hosts of the answers or of vCenter.

On a terminal, output that is longer than the screen is shown by the program that ` + "`" + `PAGER` + "`" + ` names. Without ` + "`" + `PAGER` + "`" + `, with ` + "`" + `PAGER=cat` + "`" + `
and with ` + "`" + `--no-pager` + "`" + ` it is printed. Files and pipes are never paged.
`

// commandReference returns the usage and the flags of all commands as Markdown.
func commandReference(root *cobra.Command) string {
	var b strings.Builder
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n%s\n", c.CommandPath(), sentence(c.Short), theme.Fold("    "+c.UseLine(), 80))
		c.InitDefaultHelpFlag()
		if flags := strings.TrimRight(c.LocalFlags().FlagUsagesWrapped(74), "\n"); flags != "" {
			b.WriteString("\n")
			for line := range strings.SplitSeq(flags, "\n") {
				b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
			}
		}
		b.WriteString("\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" && c.Name() != "completion" {
				walk(sub)
			}
		}
	}
	walk(root)
	return b.String()
}

// checkReference returns the list of all checks as Markdown: the topic about checks ends with it, assets/docs/check-list.md contains
// it.
func checkReference() string {
	var b strings.Builder
	var scope checks.Scope
	all := catalogue.Checks()
	slices.SortStableFunc(all, func(x, y checks.Check) int { return strings.Compare(string(x.Scope), string(y.Scope)) })
	for _, c := range all {
		if c.Scope != scope {
			scope = c.Scope
			fmt.Fprintf(&b, "\n### Scope %s\n\n", scope)
		}
		fmt.Fprintf(&b, "- `%s`: %s", c.ID, sentence(c.Criteria))
		if c.Remedy != "" && c.Remedy != "-" {
			fmt.Fprintf(&b, " Remedy: %s", sentence(c.Remedy))
		}
		fmt.Fprintf(&b, " Source: %s\n", sentence(c.Source))
	}
	return b.String()
}

// sentence adds a full stop to a text if it has none.
func sentence(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
