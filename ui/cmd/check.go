package cmd

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// Exit codes of check, as used by monitoring plugins.
const (
	checkOK       = 0
	checkWarning  = 1
	checkCritical = 2
	checkUnknown  = 3
)

// checkFlags are the flags of check: what is checked, the baseline, and the output.
type checkFlags struct {
	planFlags
	sel      checks.Selection
	pairs    string
	bundle   string // file of collect that is judged instead of a vCenter
	output   string
	out      string
	save     string // baseline to write; keepDefault: that of the vCenter
	baseline string // baseline to compare with; none: no comparison; "": that of the vCenter, if there is one
	force    bool
	fix      bool
	yes      bool
	shell    bool // the ESXi shells may be used
}

func newCheckCmd(e *console.Env) *cobra.Command {
	var f checkFlags
	var list bool
	var explain string
	c := &cobra.Command{
		Use:   "check [-f answers.yaml]",
		Short: "Check RDMA and name the first broken link; changes nothing",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return listChecks(e, f.output)
			}
			if explain != "" {
				return explainCheck(e, strings.ToUpper(explain), f.output)
			}
			if err := f.settle(args); err != nil {
				return f.ended(cmd.Context(), e, cmd, err)
			}
			if f.fix {
				return console.Signalled(cmd.Context(), e, func(ctx context.Context, stop <-chan struct{}) error {
					return f.repair(ctx, e, cmd, stop)
				})
			}
			return console.Interruptible(cmd.Context(), e, func(ctx context.Context) error {
				return f.ended(ctx, e, cmd, f.once(ctx, e, cmd))
			})
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file with the expected settings")
	c.Flags().BoolVar(&f.sel.Quick, "quick", false, "only the checks that need a few vCenter calls")
	c.Flags().StringSliceVar(&f.sel.Only, "only", nil, "run only these check ids")
	c.Flags().StringSliceVar(&f.sel.Skip, "skip", nil, "skip these check ids")
	c.Flags().BoolVar(&list, "list", false, "list all checks")
	c.Flags().StringVar(&explain, "explain", "", "explain the check with this id: criteria, how it is read, remedy and source")
	c.Flags().StringVar(&f.pairs, "pairs", "", "also measure between VMs, which loads the fabric: ring, all or VM:VM")
	c.Flags().StringVar(&f.bundle, "bundle", "", "check the data that collect wrote to this file, without a vCenter")
	c.Flags().StringVar(&f.out, "out", "", "file to write instead of stdout")
	c.Flags().StringVar(&f.save, "save-baseline", "",
		"save the current state as the healthy baseline, in a file, or in the state directory if none is named; refused while a check fails")
	c.Flags().Lookup("save-baseline").NoOptDefVal = keepDefault
	c.Flags().StringVar(&f.baseline, "baseline", "",
		"baseline to compare with (default: the one saved for this vCenter; none: do not compare)")
	c.Flags().BoolVar(&f.force, "force", false, "with --save-baseline: save it even if a check fails")
	c.Flags().BoolVar(&f.fix, "fix", false, "plan the automatic fixes, ask for confirmation and apply them")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "with --fix: accept the plan as printed, without asking")
	c.Flags().BoolVar(&f.shell, "esxi-shell", false,
		"also read the adapters' firmware and PCIe link, Secure Boot and vmkernel.log in the ESXi shell, on "+
			"hosts where SSH runs; loads the module of the Mellanox tools until the next boot")
	c.Flags().StringSliceVar(&f.limit, "limit", nil, "only these hosts and their VMs")
	console.OutputFlag(c, &f.output, "text", "json", "junit", "prometheus", "nagios", "html", "markdown")
	return c
}

// settle refuses invalid combinations of flags.
func (f *checkFlags) settle(args []string) error {
	if len(args) == 1 { // "--save-baseline FILE": an optional value has to be joined with "=", which nobody does
		if f.save != keepDefault {
			return console.Usage("rdma-setup check takes flags only", "unexpected argument %q", args[0])
		}
		f.save = args[0]
	}
	if f.out != "" {
		if err := console.Replaceable("out", f.out); err != nil {
			return err
		}
	}
	if f.save != "" && f.save != keepDefault {
		if err := console.Replaceable("save-baseline", f.save); err != nil {
			return err
		}
	}
	for _, id := range append(append([]string{}, f.sel.Only...), f.sel.Skip...) {
		if !knownCheck(id) {
			return noSuchCheck(id)
		}
	}
	switch {
	case f.bundle != "" && (f.save != "" || f.baseline != ""):
		return console.Usage("check the vCenter itself", "a baseline belongs to a vCenter, not to a bundle")
	case f.pairs != "" && f.file == "" && f.bundle == "":
		return console.Usage("add -f answers.yaml, which contains the VMs and their RDMA addresses", "--pairs needs answers")
	case f.save != "" && len(f.sel.Only)+len(f.sel.Skip) > 0:
		return console.Usage("remove --only and --skip", "a baseline needs a complete check")
	case f.shell && (f.file == "" || f.sel.Quick || f.bundle != ""):
		return console.Usage("add -f answers.yaml, and remove --quick and --bundle", "--esxi-shell needs answers and a full check")
	case f.fix && f.file == "":
		return console.Usage("add -f answers.yaml, which holds the expected settings", "--fix needs answers")
	case f.fix && (f.bundle != "" || f.save != "" || f.output != "text" && f.output != "json"):
		return console.Usage("check again after the fix", "--fix works with -o text and -o json only, and not with --bundle or --save-baseline")
	case f.yes && !f.fix:
		return console.Usage("check reads only", "--yes has no effect without --fix")
	case f.force && f.save == "":
		return console.Usage("", "--force has no effect without --save-baseline")
	}
	return nil
}

// bundleMemory is the memory limit for checking a bundle: the garbage collector works harder near it.
const bundleMemory = 320 << 20

// once checks, shows the result, and saves the baseline if requested.
func (f *checkFlags) once(ctx context.Context, e *console.Env, cmd *cobra.Command) error {
	if f.bundle != "" {
		defer e.Collect(0, bundleMemory)()
		c, err := judgeBundle(ctx, e, f.bundle, f.planFlags, f.sel, f.pairs)
		if err == nil {
			err = f.show(e, c)
		}
		if err != nil {
			return err
		}
		return console.Exit(c.verdict().Exit)
	}
	u, err := f.begin(ctx, e, cmd)
	if err != nil {
		return err
	}
	defer u.s.Close()
	c, err := u.look(ctx)
	if err != nil {
		return err
	}
	u.label(ctx, c)
	if err := f.show(e, c); err != nil {
		return err
	}
	if f.save != "" {
		if err := u.keep(c, f.save, f.force); err != nil {
			return err
		}
	}
	return console.Exit(c.verdict().Exit)
}

func (f *checkFlags) show(e *console.Env, c *checked) error {
	err := console.Publish(e, f.out, func(w io.Writer) error { return c.render(f.lines(e, w), f.output, e.ThemeFor(f.out)) })
	if f.out == "" && errors.Is(err, syscall.EPIPE) {
		return nil // "| head" has read enough; the exit code still counts
	}
	return err
}

func (f *checkFlags) lines(e *console.Env, w io.Writer) io.Writer {
	if f.output != "text" || f.out != "" {
		return w
	}
	return e.Lines(w, e.Stdout)
}

// ended replaces the document of a check that could not evaluate anything, or was stopped, with one that says why: a monitoring
// system must not go on reading the last good one.
func (f *checkFlags) ended(ctx context.Context, e *console.Env, cmd *cobra.Command, err error) error {
	if _, judged := errors.AsType[*console.CodeError](err); err == nil || judged {
		return err
	}
	r := f.unjudged(e, cmd, report.Check, err)
	if ctx.Err() != nil {
		if f.out == "" && !machine(f.output) {
			return err
		}
		r.ErrExit = console.ExitInterrupted
	}
	if bad := f.show(e, &checked{report: r}); bad != nil && bad.Error() != err.Error() {
		err = errors.Join(err, bad)
	}
	return exitOf(r, err)
}
