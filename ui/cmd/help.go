package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// newHelpCmd replaces cobra's help command: it knows the documents of package assets too. A command comes before a topic.
func newHelpCmd(e *console.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Explain a command or a topic; alone it lists both",
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
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				if err := root.Help(); err != nil {
					return err
				}
				listTopics(e)
				return nil
			}
			if c, _, err := root.Find(args); err == nil && c != root {
				c.InitDefaultHelpFlag()
				return c.Help()
			}
			text, ok := assets.Topic(args[0])
			if !ok || len(args) > 1 {
				return console.Usage(nearestTopic(root, args[0]), "there is no command and no topic %q", strings.Join(args, " "))
			}
			_, err := fmt.Fprint(e.Stdout, plain.Document(text, min(e.Width(), 120)))
			return err
		},
	}
}

func listTopics(e *console.Env) {
	fmt.Fprintln(e.Stdout, "\nTopics (rdma-setup help TOPIC):")
	for _, t := range assets.Topics() {
		fmt.Fprintf(e.Stdout, "  %-15s %s\n", t, assets.TopicTitle(t))
	}
}

// nearestTopic is the hint for a word that is neither a command nor a topic.
func nearestTopic(root *cobra.Command, word string) string {
	names := slices.Clone(assets.Topics())
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	if near := answers.Nearest(word, names); near != "" {
		return "did you mean rdma-setup help " + near + "?"
	}
	return "rdma-setup help lists the commands and topics"
}
