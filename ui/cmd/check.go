package cmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	uireport "github.com/rdma-setup/rdma-setup/ui/report"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Exit codes of check, as monitoring plugins have them.
const (
	checkOK       = 0
	checkWarning  = 1
	checkCritical = 2
	checkUnknown  = 3
)

func newCheckCmd(e *Env) *cobra.Command {
	var f planFlags
	var output, out, pairs string
	var list bool
	var sel checks.Selection
	c := &cobra.Command{
		Use:   "check [-f answers.yaml]",
		Short: "Is RDMA fine, and if not, what is the first broken link? Reads only",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return listChecks(e, output)
			}
			return interruptible(cmd.Context(), e, func(ctx context.Context) error {
				c, err := runCheck(ctx, e, cmd, f, sel, pairs)
				if err == nil {
					err = renderTo(e, out, func(w io.Writer) error { return c.render(w, output, e.themeFor(out)) })
				}
				switch {
				case err == nil:
					return exit(c.code)
				case ctx.Err() != nil:
					return err
				case output == "text":
					fmt.Fprintln(e.Stdout, uireport.PluginError(err))
				}
				return &codeError{code: checkUnknown, err: err}
			})
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file: what is expected")
	c.Flags().BoolVar(&sel.Quick, "quick", false, "only what vCenter tells in a few calls")
	c.Flags().StringSliceVar(&sel.Only, "only", nil, "only these check ids")
	c.Flags().StringSliceVar(&sel.Skip, "skip", nil, "not these check ids")
	c.Flags().BoolVar(&list, "list", false, "print the catalogue")
	c.Flags().StringVar(&pairs, "pairs", "", "measure too, which loads the fabric: ring, all or VM:VM")
	c.Flags().StringVar(&out, "out", "", "file to write instead of stdout")
	outputFlag(c, &output, "text", "json", "junit", "prometheus", "html", "markdown")
	return c
}

type checkRow struct {
	ID       string         `json:"id"`
	Scope    checks.Scope   `json:"scope"`
	Modes    []answers.Mode `json:"modes"`
	Quick    bool           `json:"quick"`
	Criteria string         `json:"criteria"`
	Remedy   string         `json:"remedy"`
	Source   string         `json:"source"`
	Fix      checks.Fix     `json:"fix"`
}

func listChecks(e *Env, output string) error {
	rows := []checkRow{}
	for _, c := range checks.Catalogue() {
		modes := c.Modes
		if len(modes) == 0 {
			modes = []answers.Mode{answers.PVRDMA, answers.SRIOV, answers.GPUDirect}
		}
		rows = append(rows, checkRow{c.ID, c.Scope, modes, c.Quick, c.Criteria, c.Remedy, c.Source, c.Fix})
	}
	if output == "json" {
		return writeJSON(e.Stdout, map[string]any{"checks": rows})
	}
	if output != "text" {
		return usage("-o text or -o json", "the catalogue has no %s", output)
	}
	for _, r := range rows {
		fmt.Fprintf(e.Stdout, "%-26s %s\n", r.ID, r.Criteria)
	}
	return nil
}

func runCheck(ctx context.Context, e *Env, cmd *cobra.Command, f planFlags, sel checks.Selection, pairs string) (*checked, error) {
	for _, id := range append(append([]string{}, sel.Only...), sel.Skip...) {
		if !knownCheck(id) {
			return nil, usage("rdma-setup check --list names them", "there is no check %q", id)
		}
	}
	if pairs != "" && f.file == "" {
		return nil, usage("give -f answers.yaml: it names the VMs and their RDMA addresses", "--pairs needs answers")
	}
	s, a, inv, err := checkWorld(ctx, e, cmd, f, sel.Quick)
	if err != nil {
		return nil, err
	}
	defer s.close()
	sel.Mode = a.Mode
	facts := s.facts(ctx, a, inv, !sel.Quick)
	var measured []perftest.Measurement
	if pairs != "" {
		if measured, err = s.measure(ctx, a, pairs, (&runner{env: e}).progress()); err != nil {
			return nil, err
		}
		facts.Pairs = append(facts.Pairs, pairFacts(measured)...)
	}
	return s.checked(a, inv, facts, checks.Run(ctx, facts, sel), measured), ctx.Err()
}

func knownCheck(id string) bool {
	for _, c := range checks.Catalogue() {
		if c.ID == id {
			return true
		}
	}
	return false
}

// checkWorld reads what is judged: what the answers name, or without answers everything, with the mode guessed from
// what the VMs have.
func checkWorld(ctx context.Context, e *Env, cmd *cobra.Command, f planFlags, quick bool) (*session, *answers.Answers, *backends.Inventory, error) {
	if f.file != "" {
		s, a, err := f.begin(ctx, e, cmd)
		if err != nil {
			return nil, nil, nil, err
		}
		inv, err := s.look(ctx, a, quick)
		if err != nil {
			s.close()
			return nil, nil, nil, err
		}
		return s, a, inv, nil
	}
	set, err := settings(e, cmd)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := open(ctx, e, set, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	inv, err := s.vc.Inventory(ctx, backends.Scope{Details: true})
	if err != nil {
		s.close()
		return nil, nil, nil, err
	}
	return s, answersFrom(inv), inv, nil
}

// look reads what check needs: quick is vCenter alone, full asks the guests too.
func (s *session) look(ctx context.Context, a *answers.Answers, quick bool) (*backends.Inventory, error) {
	if !quick {
		return s.survey(ctx, a)
	}
	s.use(a)
	inv, err := s.vc.Inventory(ctx, scopeOf(a))
	if err == nil {
		s.note(inv)
	}
	return inv, err
}
