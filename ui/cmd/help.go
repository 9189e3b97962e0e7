package cmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
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
				_, err := fmt.Fprint(w, plain.Document(text, min(e.Width(), 120)))
				return err
			})
		},
	}
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

// writeHelp prints the purpose and the usage of a command.
func writeHelp(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "%s\n\n%s", strings.TrimSpace(cmp.Or(c.Long, c.Short)), c.UsageString())
}

// nearestTopic is the hint for a word that is neither a command nor a topic.
func nearestTopic(root *cobra.Command, word string) string {
	names := append(slices.Clone(assets.Topics()), cliTopic, globalFlags)
	names = append(names, plain.Mapped(root.Commands(), (*cobra.Command).Name)...)
	return console.Meant(word, names, "rdma-setup help %s?", "list the commands and topics with: rdma-setup help")
}
