package cmd

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// completionLimit is how long completion may wait for a vCenter.
const completionLimit = 5 * time.Second

// fixed are flags whose value is one of a few words, in addition to those of type console.Choice.
var fixed = map[string][]string{
	"pairs": {"ring", "all"}, "on-conflict": {string(rollback.Keep), string(rollback.Restore), string(rollback.Stop)},
	"log-level": {"debug", "info", "warn", "error"}, "systems": lab.Systems(),
}

// completeFlags adds completion to the flags that name hosts, VMs, pNICs and checks, and to those that take one of a few words.
func completeFlags(c *cobra.Command, e *console.Env) {
	for flag, offer := range map[string]cobra.CompletionFunc{
		"limit": completeHosts(e), "force-nic": completeNICs(e), "skip": completeChecks, "only": completeChecks, "explain": completeChecks,
		"vm": completeVMs,
	} {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, offer) // fails only for an unknown flag
		}
	}
	words := func(f *pflag.Flag) {
		from := fixed[f.Name]
		switch f.Name + " of " + c.Name() {
		case "scenario of lab":
			from = lab.Scenarios()
		case "scenario of rehearse":
			from = scenario.Broken()
		}
		if choice, ok := f.Value.(*console.Choice); ok {
			from = choice.From
		}
		if from != nil {
			// fails only for an unknown flag
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(from, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	c.Flags().VisitAll(words)
	c.PersistentFlags().VisitAll(words)
	for _, sub := range c.Commands() {
		completeFlags(sub, e)
	}
}

// completeHosts offers host names for a list: those of the answers if they name any, else those of vCenter.
func completeHosts(e *console.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		a := answersOf(cmd)
		if a != nil && len(a.Hosts.Names) > 0 {
			return listed(typed, a.Hosts.Names)
		}
		return listed(typed, plain.Mapped(hostsNow(cmd, e, a), hostName))
	}
}

func completeVMs(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	a := answersOf(cmd)
	if a == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return listed(typed, plain.Mapped(a.VMs, func(v answers.VM) string { return v.Name }))
}

func completeNICs(e *console.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, h := range hostsNow(cmd, e, answersOf(cmd)) {
			for _, n := range h.NICs {
				names = append(names, h.Name+"/"+n.Device)
			}
		}
		return listed(typed, names)
	}
}

func completeChecks(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return listed(typed, checkIDs())
}

// listed returns each name as the next item of a comma-separated list.
func listed(typed string, names []string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	chosen := strings.Split(before, ",")
	var out []string
	for _, n := range names {
		if !slices.Contains(chosen, n) {
			out = append(out, before+n)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// answersOf reads the file of -f if it is valid; nil otherwise.
func answersOf(cmd *cobra.Command) *answers.Answers {
	f := cmd.Flags().Lookup("file")
	if f == nil || f.Value.String() == "" || f.Value.String() == "-" {
		return nil
	}
	r, err := os.Open(f.Value.String())
	if err != nil {
		return nil
	}
	defer r.Close()
	a, err := answers.Load(r, f.Value.String())
	if err != nil {
		return nil
	}
	return a
}

// hostsNow queries vCenter if the environment has everything for it: completion never prompts for a password, starts no lab and
// prints nothing.
func hostsNow(cmd *cobra.Command, e *console.Env, a *answers.Answers) []backends.Host {
	set, err := console.ReadSettings(e, cmd)
	if err != nil || set.Lab || set.Insecure || set.Password.Asks() || !set.Password.Known() {
		return nil
	}
	quiet := *e
	quiet.Terminal = func() bool { return false }
	ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
	defer cancel()
	s, err := session.Open(ctx, &quiet, set, a)
	if err != nil {
		return nil
	}
	defer s.Close()
	inv, err := s.Inventory(ctx, backends.Scope{})
	if err != nil {
		return nil
	}
	return inv.Hosts
}
