// Package generate is the command generate: one file per subcommand. The output comes from wizard/generate.
package generate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends/vsphere/appliance"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// NewCmd returns the command with its subcommands.
func NewCmd(e *console.Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "generate",
		Short: "Print files made from templates",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return console.Usage("see: rdma-setup generate --help", "generate what?")
		},
	}
	c.AddCommand(
		newAnswersCmd(e), newRoleCmd(e), newSwitchCmd(e), newMPIJobCmd(e),
		newDockerfileCmd(e), newDaemonJSONCmd(e), newContainerRoutesCmd(e), newDockerSetupCmd(e),
		newOSUCmd(e), newHorovodCmd(e), newTopologyCmd(e), newSystemdCmd(e), newMonitoringCmd(e),
	)
	for _, k := range networkFiles {
		c.AddCommand(newNetworkCmd(e, k))
	}
	return c
}

// origin returns the header of generated files.
func origin(e *console.Env, what string, from ...string) generate.Origin {
	return generate.Origin{Tool: "rdma-setup " + e.Version, What: "generate " + what, From: from, Made: e.Made()}
}

// show prints a generated text; an error about the values that it is made from is one of usage.
func show(e *console.Env, hint, text string, err error) error {
	if err != nil {
		return console.Usage(hint, "%v", err)
	}
	_, err = fmt.Fprint(e.Stdout, text)
	return err
}

// sources names the sources of the facts, and says so if they come from the lab.
func sources(s *session.Session, from ...string) []string {
	if s.Simulated() {
		from = append(from, "SIMULATED by the embedded lab: not valid for real hardware")
	}
	return from
}

func modeFlag(c *cobra.Command, into *string) {
	*into = string(answers.PVRDMA)
	c.Flags().Var(&console.Choice{Into: into, From: []string{string(answers.PVRDMA), string(answers.SRIOV), string(answers.GPUDirect)}},
		"mode", "pvrdma, sriov or gpudirect")
}

func newAnswersCmd(e *console.Env) *cobra.Command {
	var mode string
	c := &cobra.Command{
		Use:   "answers",
		Short: "Print answers with the common keys, their defaults and what they mean",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return answers.Save(e.Stdout, answers.Default(answers.Mode(mode)))
		},
	}
	modeFlag(c, &mode)
	return c
}

func newRoleCmd(e *console.Env) *cobra.Command {
	var mode, tool, name, output string
	c := &cobra.Command{
		Use:   "role",
		Short: "Print the commands that create a vCenter role with exactly the privileges of a mode",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			privileges := checks.Privileges(answers.Mode(mode))
			name = cmp.Or(name, "rdma-setup-"+mode)
			if output == "json" {
				return plain.WriteJSON(e.Stdout, map[string]any{"role": name, "mode": mode, "privileges": privileges,
					"shared_lock": checks.SharedLock(),
					"deploy":      appliance.Privileges(), "images": checks.Images(), "lockdown": checks.Lockdown()})
			}
			if tool == "powercli" {
				_, err := fmt.Fprintf(e.Stdout, "New-VIRole -Name '%s' -Privilege (Get-VIPrivilege -Id '%s')\n"+
					"# New-VIPermission -Entity (Get-Folder -NoRecursion) -Principal 'DOMAIN\\account' -Role '%s'\n"+
					"# For run.lock: shared and measuring in turn, also: Set-VIRole -Role '%[3]s' -AddPrivilege (Get-VIPrivilege -Id '%[4]s')\n"+
					"# For rdma-setup deploy, also: Set-VIRole -Role '%[3]s' -AddPrivilege (Get-VIPrivilege -Id '%[5]s')\n"+
					"# For clusters that an image manages, also: Set-VIRole -Role '%[3]s' -AddPrivilege (Get-VIPrivilege -Id '%[6]s')\n"+
					"# For hosts in lockdown mode, also: Set-VIRole -Role '%[3]s' -AddPrivilege (Get-VIPrivilege -Id '%[7]s')\n",
					strings.ReplaceAll(name, "'", "''"), strings.Join(privileges, "','"), strings.ReplaceAll(name, "'", "''"),
					strings.Join(checks.SharedLock(), "','"), strings.Join(appliance.Privileges(), "','"),
					strings.Join(checks.Images(), "','"), strings.Join(checks.Lockdown(), "','"))
				return err
			}
			_, err := fmt.Fprintf(e.Stdout, "govc role.create %s \\\n  %s\n# govc permissions.set -principal account@domain -role %s /\n"+
				"# For run.lock: shared and measuring in turn, also: govc role.update -a %[3]s %[4]s\n# For rdma-setup deploy, also: govc "+
				"role.update -a %[3]s %[5]s\n"+
				"# For clusters that an image manages, also: govc role.update -a %[3]s %[6]s\n"+
				"# For hosts in lockdown mode, also: govc role.update -a %[3]s %[7]s\n",
				plain.ShellWord(name), strings.Join(privileges, " \\\n  "), plain.ShellWord(name), strings.Join(checks.SharedLock(), " "),
				strings.Join(appliance.Privileges(), " "),
				strings.Join(checks.Images(), " "), strings.Join(checks.Lockdown(), " "))
			return err
		},
	}
	modeFlag(c, &mode)
	c.Flags().Var(&console.Choice{Into: &tool, From: []string{"govc", "powercli"}}, "tool", "govc or powercli")
	tool = "govc"
	c.Flags().StringVar(&name, "name", "", "name of the role (default: rdma-setup-MODE)")
	console.OutputFlag(c, &output, "text", "json")
	return c
}
