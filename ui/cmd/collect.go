package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func newCollectCmd(e *console.Env) *cobra.Command {
	var f checkFlags
	var out, output string
	var redact bool
	c := &cobra.Command{
		Use:   "collect [-f answers.yaml] [--out bundle.tgz]",
		Short: "Collect what check reads in one file, for check --bundle on another machine",
		Long: `collect reads what check reads and writes it to one file, without user names and secrets. Names of hosts and VMs,
addresses and versions are kept, because the checks need them. On a machine without access to vCenter,
rdma-setup check --bundle FILE then prints the findings that check would have printed here.

It also reads what a copy of the site needs: installed VIBs, services, standard switches. rdma-setup lab --bundle FILE serves that
copy. Guests are read where -f names them; all other guests of the copy are new installations.

With --redact, names of hosts, VMs, folders, clusters, switches, port groups, datastores and rules become host-001, vm-00001 and so on,
and IP addresses become other addresses in networks of the same size, in the answers of the bundle too. Models, versions, MAC and
PCI addresses are kept. Names that are one lowercase word or a number are replaced in fields that hold a name, not within texts.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := console.OutputFiles(cmd); err != nil {
				return err
			}
			return console.Interruptible(cmd.Context(), e, func(ctx context.Context) error {
				b, err := collect(ctx, e, cmd, &f)
				if ctx.Err() != nil {
					return backends.Interruptedf("", "", "interrupted: nothing was written")
				}
				if err != nil {
					return err
				}
				b.Masked = redact
				out = cmp.Or(out, "rdma-bundle-"+b.Made.UTC().Format("20060102-150405")+".tgz")
				if err := writeBundle(out, b); err != nil {
					return err
				}
				inv := b.Facts.Inventory
				names := "user names are left out, other names and addresses are not"
				if redact {
					names = "user names are left out, names and IP addresses are replaced"
				}
				missing := unreadIn(b)
				for _, m := range missing {
					fmt.Fprintln(e.Stderr, backends.Clean("warning: "+m.Target+" was not read: "+m.Why))
				}
				hosts, guests := len(inv.Hosts)-count(missing, backends.TypeHost), len(inv.Guests)-count(missing, backends.TypeGuest)
				fmt.Fprintf(e.Stderr, "%d hosts, %d VMs, %d guests, %d measurements; %s\ncheck it with: rdma-setup check --bundle %s\n",
					hosts, len(inv.VMs), guests, len(b.Measured()), names, plain.ShellWord(out))
				if output == "json" {
					return plain.WriteJSON(e.Stdout, map[string]any{"file": out, "hosts": hosts, "vms": len(inv.VMs), "guests": guests,
						"measurements": len(b.Measured()), "simulated": inv.VCenter.Simulated, "unread": missing})
				}
				_, err = fmt.Fprintln(e.Stdout, out)
				return err
			})
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file with the expected settings; it is added to the bundle")
	console.OutputFlag(c, &output, "text", "json")
	c.Flags().StringVar(&out, "out", "", "file to write (default rdma-bundle-TIME.tgz)")
	c.Flags().BoolVar(&redact, "redact", false, "replace names and IP addresses consistently")
	c.Flags().BoolVar(&f.sel.Quick, "quick", false, "only the checks that need a few vCenter calls")
	c.Flags().BoolVar(&f.shell, "esxi-shell", false,
		"also read the adapters' firmware and PCIe link, Secure Boot and vmkernel.log in the ESXi shell, on "+
			"hosts where SSH runs; loads the module of the Mellanox tools until the next boot")
	c.Flags().StringVar(&f.baseline, "baseline", "", "baseline to include (default: the one saved for this vCenter; none: no baseline)")
	c.Flags().StringVar(&f.pairs, "pairs", "", "also measure between VMs, which loads the fabric: ring, all or VM:VM")
	return c
}

// collect reads the same facts as check, including the baseline it would be compared with.
func collect(ctx context.Context, e *console.Env, cmd *cobra.Command, f *checkFlags) (*bundle.Bundle, error) {
	if err := f.settle(nil); err != nil {
		return nil, err
	}
	u, err := f.begin(ctx, e, cmd)
	if err != nil {
		return nil, err
	}
	defer u.s.Close()
	u.s.Wide = true
	if _, err := u.look(ctx); err != nil {
		return nil, err
	}
	if !f.sel.Quick {
		u.s.AskRest(ctx, u.a, u.facts.Inventory)
	}
	b := &bundle.Bundle{Tool: e.Version, Made: e.Now(), Quick: f.sel.Quick, Facts: u.facts}
	if f.file != "" {
		b.Answers = u.a
	}
	if u.base != nil {
		b.Kept = u.base.Made
	}
	return b, nil
}

// An unread is a host or guest that could not be read.
type unread struct {
	Target string `json:"target"`
	Why    string `json:"why"`

	of backends.TargetType // "" for a guest of a VM that is not on, which is not tried
}

// unreadIn returns the hosts of a bundle that vCenter is not connected to, and the guests of its answers that were not read.
func unreadIn(b *bundle.Bundle) []unread {
	out := []unread{}
	inv := b.Facts.Inventory
	for _, h := range inv.Hosts {
		if h.State != "connected" {
			why := "vCenter is not connected to it (" + h.State + ")"
			if h.State == "" {
				why = "the account may not see its state"
			}
			out = append(out, unread{h.Name, why, backends.TypeHost})
		}
	}
	for _, g := range inv.Guests {
		if g.Error != "" {
			out = append(out, unread{backends.GuestRef(g.VM).String(), g.Error, backends.TypeGuest})
		}
	}
	if b.Answers == nil || b.Quick {
		return out
	}
	for _, a := range b.Answers.VMs {
		if v := inv.VM(a.Name); v != nil && v.Power != "poweredOn" && a.Guest.Managed() {
			out = append(out, unread{backends.GuestRef(v.Name).String(), "the VM is " + v.Power, ""})
		}
	}
	return out
}

func count(list []unread, of backends.TargetType) int {
	n := 0
	for _, u := range list {
		if u.of == of {
			n++
		}
	}
	return n
}

func writeBundle(path string, b *bundle.Bundle) error {
	if err := console.Replaceable("out", path); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(path, renameio.WithStaticPermissions(0o600))
	if err == nil {
		defer f.Cleanup()
		if err = bundle.Write(f, b); err == nil {
			err = f.CloseAtomicallyReplace()
		}
	}
	if err != nil {
		return console.NotWritable(path, err)
	}
	return nil
}

// judgeBundle checks a file of collect, here or elsewhere, against the answers in it or those of -f.
func judgeBundle(ctx context.Context, e *console.Env, path string, f planFlags, sel checks.Selection, pairs string) (*checked, error) {
	if pairs != "" {
		return nil, console.Usage("measure while collecting: rdma-setup collect --pairs ring", "--pairs cannot measure from a bundle")
	}
	b, err := openBundle(path)
	if err != nil {
		return nil, err
	}
	a := b.Answers
	switch {
	case f.file != "":
		if a, err = f.load(e, nil); err != nil {
			return nil, err
		}
	case a == nil:
		a = answersFrom(b.Facts.Inventory)
	}
	facts := b.Facts
	facts.Answers, sel.Uses = a, a.Uses()
	note := "checked from a bundle that rdma-setup " + b.Tool + " gathered at " + b.Made.Format("2006-01-02 15:04:05 -0700")
	if b.Quick && !sel.Quick {
		sel.Quick = true
		note += "; it contains only what a quick check reads, so only those checks ran"
	}
	measured, found := b.Measured(), catalogue.Run(ctx, facts, sel)
	vc := facts.Inventory.VCenter
	c := &checked{report: &report.Report{
		Mode: string(a.Mode), Made: b.Made, Tool: e.Version, VCenter: vc.URL, Simulated: vc.Simulated, Notes: []string{note},
		Command: report.Check, Measurements: measured, Environment: report.EnvironmentOf(facts.Inventory),
		Unconfigured: len(sel.Only) == 0 && checks.Untouched(a, facts.Inventory), Ports: checks.PortsOf(a, facts.Inventory),
	}}
	if !sel.Quick {
		labelled(ctx, facts, plan.Options{Skip: sel.Skip}, found)
	}
	c.report.SetChecks(found)
	if facts.Baseline != nil {
		c.baseline = &bundle.Baseline{Made: b.Kept}
	}
	fmt.Fprintln(e.Stderr, console.Visible(note))
	return c, ctx.Err()
}

func openBundle(path string) (*bundle.Bundle, error) {
	const hint = "create one with: rdma-setup collect --out FILE"
	unreadable := func(err error) error {
		hint := hint
		if errors.Is(err, fs.ErrPermission) {
			hint = "make the file readable for you, or " + hint
		}
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return console.Usage(hint, "%s: the bundle cannot be read: %v", path, err)
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, unreadable(err)
	case !st.Mode().IsRegular(): // opening a pipe would block
		return nil, unreadable(errors.New("it is not a regular file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	b, err := bundle.Read(f)
	if said, ok := errors.AsType[*backends.Error](err); ok && said.Target == "" {
		said.Target = path
	}
	return b, err
}
