package cmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// newHelpCmd replaces cobra's help command: it also shows the documents of package assets. A command has priority over a topic.
func newHelpCmd(e *console.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Explain a command or a topic; without an argument, list both",
		Example: `  rdma-setup help apply
  rdma-setup help sriov
  rdma-setup help troubleshooting`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			parent, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range parent.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			if len(args) == 0 {
				for _, t := range assets.Topics() {
					names = append(names, cobra.CompletionWithDesc(t, assets.TopicTitle(t)))
				}
				names = append(names, cobra.CompletionWithDesc(cliTopic, cliTitle), cobra.CompletionWithDesc(globalFlags, globalTitle))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				return console.Page(e, func(w io.Writer) error {
					writeHelp(w, root)
					return listTopics(w)
				})
			}
			if c, _, err := root.Find(args); err == nil && c != root {
				c.InitDefaultHelpFlag()
				return c.Help()
			}
			if len(args) == 1 && args[0] == globalFlags {
				return console.Page(e, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s\n\n%s", globalTitle, root.PersistentFlags().FlagUsagesWrapped(min(e.Width(), 120)))
					return err
				})
			}
			text, ok := assets.Topic(args[0])
			switch args[0] {
			case cliTopic:
				text, ok = cliIntro+"\n"+commandReference(root), true
			case checksTopic:
				text += checkReference()
			}
			if !ok || len(args) > 1 {
				return console.Usage(nearestTopic(root, args[0]), "%q is neither a command nor a topic", strings.Join(args, " "))
			}
			return console.Page(e, func(w io.Writer) error {
				_, err := fmt.Fprint(w, foldTopic(text, min(e.Width(), 120)))
				return err
			})
		},
	}
}

// foldTopic folds a document to a width. The lines of a paragraph are joined first; everything else is printed as written.
func foldTopic(text string, width int) string {
	blocks := strings.Split(text, "\n\n")
	for i, block := range blocks {
		if !slices.ContainsFunc(strings.Split(block, "\n"), func(l string) bool { return strings.IndexAny(l, " #|-<0123456789") == 0 }) {
			blocks[i] = theme.Wrap(strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", " "), width)
			continue
		}
		blocks[i] = theme.Fold(block, width)
	}
	return strings.TrimRight(strings.Join(blocks, "\n\n"), "\n") + "\n"
}

// The topic about global flags is generated from the flags.
const (
	globalFlags = "global-flags"
	globalTitle = "Flags of every command"
)

func listTopics(w io.Writer) error {
	fmt.Fprintln(w, "\nTopics (rdma-setup help TOPIC):")
	for _, t := range assets.Topics() {
		fmt.Fprintf(w, "  %-15s %s\n", t, assets.TopicTitle(t))
	}
	_, err := fmt.Fprintf(w, "  %-15s %s\n  %-15s %s\n", cliTopic, cliTitle, globalFlags, globalTitle)
	return err
}

// shortHelp makes --help print only a command's own flags: global flags are the topic global-flags.
func shortHelp(root *cobra.Command, e *console.Env) {
	usage := root.UsageTemplate()
	from, to := strings.Index(usage, "{{if .HasAvailableLocalFlags}}"), strings.Index(usage, "{{if .HasHelpSubCommands}}")
	width := min(e.Width(), 120)
	root.SetUsageTemplate(usage[:from] + fmt.Sprintf(`

Flags:
{{if .HasParent}}{{.LocalFlags.FlagUsagesWrapped %[1]d | trimTrailingWhitespaces}}{{else -}}
{{.LocalNonPersistentFlags.FlagUsagesWrapped %[1]d | trimTrailingWhitespaces}}{{end}}

Flags for vCenter, log-in, lab and logs: rdma-setup help `, width) + globalFlags + usage[to:])
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		paged := *e
		if no, err := c.Flags().GetBool("no-pager"); err == nil && no {
			paged.NoPager = true
		}
		_ = console.Page(&paged, func(w io.Writer) error { writeHelp(w, c); return nil })
	})
}

func writeHelp(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "%s\n\n%s", strings.TrimSpace(cmp.Or(c.Long, c.Short)), c.UsageString())
}

// nearestTopic is the hint for a word that is neither a command nor a topic.
func nearestTopic(root *cobra.Command, word string) string {
	names := append(slices.Clone(assets.Topics()), cliTopic, globalFlags)
	names = append(names, plain.Mapped(root.Commands(), (*cobra.Command).Name)...)
	return console.Meant(word, names, "rdma-setup help %s?", "list the commands and topics with: rdma-setup help")
}

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

The files of --out, --trace and --save-baseline must be regular files: a device, a directory and - are refused.
Without --out, what is text goes to stdout; the name of a file called - is ./-.
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

func sentence(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
