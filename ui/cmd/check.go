package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/plain"
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
	var output string
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
			code, err := runCheck(cmd.Context(), e, cmd, f, sel, output)
			if err != nil {
				return &codeError{code: checkUnknown, err: err}
			}
			return exit(code)
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "answers file: what is expected")
	c.Flags().BoolVar(&sel.Quick, "quick", false, "only what vCenter tells in a few calls")
	c.Flags().StringSliceVar(&sel.Only, "only", nil, "only these check ids")
	c.Flags().StringSliceVar(&sel.Skip, "skip", nil, "not these check ids")
	c.Flags().BoolVar(&list, "list", false, "print the catalogue")
	outputFlag(c, &output, "text", "json")
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
	for _, r := range rows {
		fmt.Fprintf(e.Stdout, "%-26s %s\n", r.ID, r.Criteria)
	}
	return nil
}

// checkDoc is the JSON that CLI.md promises.
type checkDoc struct {
	Status   string           `json:"status"`
	Results  []checks.Finding `json:"results"`
	Counts   map[string]int   `json:"counts"`
	APICalls int              `json:"api_calls"`
}

func runCheck(ctx context.Context, e *Env, cmd *cobra.Command, f planFlags, sel checks.Selection, output string) (int, error) {
	for _, id := range append(append([]string{}, sel.Only...), sel.Skip...) {
		if !knownCheck(id) {
			return 0, usage("rdma-setup check --list names them", "there is no check %q", id)
		}
	}
	s, a, inv, err := checkWorld(ctx, e, cmd, f, sel.Quick)
	if err != nil {
		return 0, err
	}
	defer s.close()
	sel.Mode = a.Mode
	findings := checks.Run(ctx, s.facts(ctx, a, inv, !sel.Quick), sel)
	code, word := judged(findings)
	if output == "json" {
		doc := checkDoc{Status: word, Results: append([]checks.Finding{}, findings...), Counts: map[string]int{}, APICalls: s.vc.Calls()}
		for status, n := range plain.Count(findings) {
			doc.Counts[string(status)] = n
		}
		return code, writeJSON(e.Stdout, doc)
	}
	return code, plain.Findings(e.Stdout, findings)
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

// judged is the exit code and the word for it.
func judged(findings []checks.Finding) (int, string) {
	code, word := checkOK, "ok"
	for _, f := range findings {
		switch {
		case f.Status == checks.Fail:
			return checkCritical, "critical"
		case f.Status == checks.Warn && !f.Quiet, f.Status == checks.Unknown && !f.Quiet:
			code, word = checkWarning, "warning"
		}
	}
	return code, word
}
