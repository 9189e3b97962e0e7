package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
)

func newLabCmd(e *console.Env) *cobra.Command {
	var o lab.Options
	var idle time.Duration
	var file string
	c := &cobra.Command{
		Use:   "lab",
		Short: "Serve a simulated data centre until interrupted",
		Long: `Serve a simulated data centre until interrupted: a vCenter, ESXi shells and Linux guests that refuse what the real
ones refuse. Prints "ready" on stdout; the directory of --dir then contains answers, known_hosts, a key and the file env,
which a shell can read with the command ".".

With --bundle it serves the site that collect has read, a twin: the same hosts, adapters, switches, VMs and rules, and guests by
their facts. What was not collected is printed as assumed. The directory then also holds the answers of the bundle with the
addresses of the twin (answers.yaml), and the list of what is assumed (assumed.txt).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.Scenario == "help":
				return table(e, [2]string{"SCENARIO", "DATA CENTRE"}, lab.ScenarioTable())
			case slices.Contains(o.Faults, "help"):
				return table(e, [2]string{"KEY", "MEANING"}, lab.FaultTable())
			}
			return console.Signalled(cmd.Context(), e, func(ctx context.Context, stop <-chan struct{}) error {
				if !slices.Contains(lab.Scenarios(), o.Scenario) {
					hint := console.Meant(o.Scenario, lab.Scenarios(), "%s?", "see: rdma-setup lab --scenario help")
					return console.Usage(hint, "unknown scenario %q", o.Scenario)
				}
				rules, err := faultRules(o.Faults)
				if err != nil {
					return err
				}
				if o.Commands, err = commandTimes(cmd.Flags()); err != nil {
					return err
				}
				if o.GuestFiles, err = cmd.Flags().GetString("guest-files"); err != nil {
					return err
				}
				site, err := siteOf(cmd.Flags(), file, &o)
				if err != nil {
					return err
				}
				// Most of what the lab allocates lives for one command: collecting less often saves a quarter of its CPU and
				// costs a fifth more memory.
				defer e.Collect(300, 0)()
				l, err := lab.Start(ctx, o)
				if err != nil {
					return console.Usage("see: rdma-setup lab --help", "%v", err)
				}
				defer l.Close()
				var hosts, vms []string
				l.World().View(func(s *world.State) {
					for _, h := range s.Hosts {
						hosts = append(hosts, h.Name)
					}
					for _, v := range s.VMs {
						vms = append(vms, v.Name)
					}
				})
				if err := knownTargets(rules, hosts, vms); err != nil {
					return err
				}
				if err := introduce(e, site, l, o.Dir); err != nil {
					return err
				}
				fmt.Fprintln(e.Stdout, "ready")
				if o.Dir != "" {
					fmt.Fprintf(e.Stderr, "lab: %s; for a shell: set -a; . %s/env; set +a\n", l.URL(), o.Dir)
				}
				waitIdle(ctx, stop, l, idle)
				return nil
			})
		},
	}
	c.Flags().IntVar(&o.Hosts, "hosts", 0, "number of ESXi hosts (default: from the scenario, usually 4)")
	c.Flags().IntVar(&o.VMs, "vms", 0, "number of VMs (default: two per host)")
	c.Flags().StringVar(&o.Scenario, "scenario", "healthy", "which data centre to simulate; --scenario help lists all")
	c.Flags().StringSliceVar(&o.Systems, "systems", nil, "systems of the guests, assigned in turn: "+strings.Join(lab.Systems(), ", ")+
		" (default: from the scenario)")
	c.Flags().DurationVar(&o.Latency, "latency", 0, "delay of every vCenter call")
	c.Flags().DurationVar(&o.RebootTime, "reboot-time", 3*time.Second, "how long a host takes to reboot")
	c.Flags().DurationVar(&o.BootTime, "boot-time", time.Second, "how long a guest takes to start")
	c.Flags().StringArrayVar(&o.Faults, "fault", nil,
		"a fault to inject, such as vm=vm-01,command=uname,do=hang; --fault help lists the keys and the effects")
	c.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:0", "address of the vCenter")
	c.Flags().StringVar(&o.Dir, "dir", "", "directory for answers, known_hosts, key and env")
	c.Flags().StringVar(&file, "bundle", "", "simulate the site that collect wrote to this file, instead of a scenario")
	c.Flags().DurationVar(&idle, "idle-exit", 0, "exit after this time without a call; 0: never")
	return c
}

// siteOf converts the site of a bundle to options of a lab; nil if none is requested.
func siteOf(fs *pflag.FlagSet, file string, o *lab.Options) (*twin.Twin, error) {
	if file == "" && fs.Changed("bundle") {
		return nil, console.Usage("give it a value, or leave it out; a variable of the shell may be unset", "--bundle is empty")
	}
	if file == "" {
		return nil, nil
	}
	for _, name := range []string{"hosts", "vms", "scenario", "systems"} {
		if fs.Changed(name) {
			return nil, console.Usage("leave --"+name+" out", "--%s cannot be combined with --bundle, which already describes the lab", name)
		}
	}
	b, err := openBundle(file)
	if err != nil {
		return nil, err
	}
	site, err := twin.Of(b)
	if err == nil {
		o.Found = site.Found
	}
	return site, err
}

// introduce prints what a twin assumes, and writes that and the answers of the bundle to the directory of the lab.
func introduce(e *console.Env, site *twin.Twin, l *lab.Lab, dir string) error {
	if site == nil {
		return nil
	}
	fmt.Fprintln(e.Stderr, "assumed, because it was not collected:")
	for _, what := range site.Assumed {
		fmt.Fprintln(e.Stderr, "  "+console.Visible(what))
	}
	if dir == "" {
		return nil
	}
	var text bytes.Buffer
	has, err := site.Answers(&text, l, nil)
	if err == nil && has {
		err = os.WriteFile(filepath.Join(dir, "answers.yaml"), text.Bytes(), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "assumed.txt"), []byte(strings.Join(site.Assumed, "\n")+"\n"), 0o600)
	}
	return err
}

func table(e *console.Env, head [2]string, rows [][2]string) error {
	return console.Page(e, func(w io.Writer) error {
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, r := range append([][2]string{head}, rows...) {
			fmt.Fprintf(out, "%s\t%s\n", r[0], r[1])
		}
		return out.Flush()
	})
}

// commandTimes parses how long the commands of guests and hosts take.
func commandTimes(fs *pflag.FlagSet) (timing.Clock, error) {
	times, err := fs.GetString("command-times")
	if err != nil {
		return timing.Clock{}, err
	}
	scale, err := fs.GetFloat64("clock-scale")
	switch {
	case err != nil:
		return timing.Clock{}, err
	case times != "fast" && times != "real":
		return timing.Clock{}, console.Usage("use fast or real", "command times %q are not valid", times)
	case scale <= 0:
		return timing.Clock{}, console.Usage("use a number above 0, such as 0.1", "clock scale %g is not valid", scale)
	}
	return timing.Clock{Real: times == "real", Scale: scale}, nil
}

// waitIdle returns when the lab should end: after an interrupt, or after the given time without a call.
func waitIdle(ctx context.Context, stop <-chan struct{}, l *lab.Lab, idle time.Duration) {
	var tick <-chan time.Time
	if idle > 0 {
		t := time.NewTicker(max(time.Second, idle/10))
		defer t.Stop()
		tick = t.C
	}
	calls, since := -1, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-stop:
			return
		case now := <-tick:
			if n := l.Calls(); n != calls {
				calls, since = n, now
			} else if now.Sub(since) >= idle {
				return
			}
		}
	}
}
