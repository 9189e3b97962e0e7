package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/generate"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

func newRootCmd(e *console.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "rdma-setup",
		Short: "Set up RDMA over Converged Ethernet (RoCE) on vSphere, and verify it",
		Long: `rdma-setup finds the RoCE-capable NICs of a vSphere cluster, plans the changes that PVRDMA, SR-IOV or
GPUDirect needs, applies them to hosts and guests, measures, and reports the results or the first broken link.

Without a command it opens the wizard. With --lab everything runs against a simulated data centre.
Guides and references: rdma-setup help lists them, rdma-setup help TOPIC prints one.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runWizard(cmd.Context(), e, cmd)
		},
	}
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if no, err := cmd.Flags().GetBool("no-pager"); err == nil && no {
			e.NoPager = true
		}
	}
	root.SetIn(e.Stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	console.AddSettings(root.PersistentFlags())
	root.Flags().Bool("accessible", false, "ask plain questions, one per line, for screen readers (or set ACCESSIBLE=1)")
	root.Flags().StringP("file", "f", "", "start the wizard with these answers")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if _, name, ok := strings.Cut(err.Error(), "unknown flag: "); ok {
			if err := console.Removed(strings.TrimPrefix(cmd.CommandPath(), "rdma-setup ") + " " + name); err != nil {
				return err
			}
		}
		return console.Usage(nearestFlag(cmd, err), "%s", flagWords(err))
	})
	root.AddGroup(
		&cobra.Group{ID: "do", Title: "Set up:"},
		&cobra.Group{ID: "see", Title: "Inspect:"},
		&cobra.Group{ID: "more", Title: "More:"},
	)
	root.SetHelpCommand(newHelpCmd(e))
	shortHelp(root, e)
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	for group, commands := range map[string][]*cobra.Command{
		"do":  {newPlanCmd(e), newApplyCmd(e), newResumeCmd(e), newRollbackCmd(e), newRunsCmd(e), newAttachCmd(e), newDeployCmd(e)},
		"see": {newDiscoverCmd(e), newCheckCmd(e), newCollectCmd(e), newBenchCmd(e), newReportCmd(e)},
		"more": {newMMIOCmd(e), generate.NewCmd(e), newParseCmd(e), newLabCmd(e), newRehearseCmd(e), newSchemaCmd(e), newManCmd(e),
			newVersionCmd(e)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args = cobra.NoArgs
			c.RunE = func(*cobra.Command, []string) error {
				return console.Usage("see: rdma-setup completion --help", "select a shell: bash, zsh or fish")
			}
		}
	}
	describe(root)
	wrapArgs(root)
	return root
}

// wrapArgs makes cobra's errors about arguments usage errors, so that they exit 2 like those about flags.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if _, known := errors.AsType[*backends.Error](err); known || err == nil {
				return err
			}
			if len(args) > 0 && cmd.HasSubCommands() {
				if err := console.Removed(strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "rdma-setup ")); err != nil {
					return err
				}
				return console.Usage(nearestCommand(cmd, args[0]), "%v", err)
			}
			return console.Usage("see: "+cmd.CommandPath()+" --help", "%s", argumentWords(cmd, args))
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// argumentWords describes what is wrong with the number of arguments, with the command's usage line.
func argumentWords(cmd *cobra.Command, args []string) string {
	_, accepted, _ := strings.Cut(cmd.Use, " ")
	accepted, _, _ = strings.Cut(accepted, " -")
	switch {
	case accepted == "" || strings.HasPrefix(accepted, "-"):
		return fmt.Sprintf("%s accepts only flags, not %q", cmd.CommandPath(), args[0])
	case len(args) == 0:
		return cmd.CommandPath() + " needs an argument: " + accepted
	}
	return fmt.Sprintf("%s accepts only %s, not also %q", cmd.CommandPath(), accepted, args[len(args)-1])
}

// flagWords returns the library's error about a flag, without the internal texts of parsers.
func flagWords(err error) string {
	text := err.Error()
	for inner, want := range map[string]string{": strconv.ParseInt: ": "use a whole number", ": strconv.ParseBool: ": "use true or false",
		": time: ": "use a duration such as 40s or 5m"} {
		if what, _, ok := strings.Cut(text, inner); ok {
			return what + ": " + want
		}
	}
	return text
}

// nearestFlag is the hint for an unknown flag, or value of a flag: the one that was probably meant.
func nearestFlag(cmd *cobra.Command, err error) string {
	see := "see: " + cmd.CommandPath() + " --help"
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if c, ok := value.GetFlag().Value.(*console.Choice); ok {
			return console.Meant(value.GetValue(), c.From, "%s?", see)
		}
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return console.Meant(name, names, "--%s? See: "+cmd.CommandPath()+" --help", see)
	}
	return see
}

// nearestCommand is the hint for an unknown command.
func nearestCommand(cmd *cobra.Command, word string) string {
	return console.Meant(word, plain.Mapped(cmd.Commands(), (*cobra.Command).Name), cmd.CommandPath()+" %s?",
		"see: "+cmd.CommandPath()+" --help")
}
