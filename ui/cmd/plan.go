package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func newPlanCmd(e *console.Env) *cobra.Command {
	var f planFlags
	var output, out, other string
	var detailed bool
	c := &cobra.Command{
		Use:   "plan -f answers.yaml",
		Short: "Show the planned changes and their impact; changes nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := console.OutputFiles(cmd); err != nil {
				return err
			}
			return resultLine(e, "plan", output, console.Interruptible(cmd.Context(), e, func(ctx context.Context) error {
				d, err := openDiff(other, &f, output)
				if err != nil {
					return err
				}
				s, a, err := f.begin(ctx, e, cmd)
				if err != nil {
					return err
				}
				defer s.Close()
				if err := d.fits(cmd, s); err != nil {
					return err
				}
				p, err := makePlan(ctx, s, a, f)
				if err != nil {
					return err
				}
				doc := planDocument(p, s.VC.Calls())
				if out != "" {
					if err := writePlanFile(out, doc); err != nil {
						return err
					}
				}
				if d != nil {
					return d.show(ctx, s, f, p, output, detailed)
				}
				if err := console.Page(e, func(w io.Writer) error { return printPlan(w, e.Lines(w, e.Stdout), output, p.plan, doc) }); err != nil {
					return err
				}
				if detailed && !p.plan.Empty() {
					return console.Exit(console.ExitChanges)
				}
				return nil
			}))
		},
	}
	f.add(c)
	console.OutputFlag(c, &output, "text", "json", "markdown")
	c.Flags().StringVar(&out, "out", "", "also save the plan as JSON in this file, for apply --plan")
	c.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit 10 when there are changes; with --diff, when the plans differ")
	c.Flags().StringVar(&other, "diff", "", "show instead how the plan differs from the one in this file: answers, or a plan that --out saved")
	return c
}

// planFormat is the format version of a saved plan. Files without one are older: unknown values were text in them.
const planFormat = 2

// A planDoc is the documented JSON of a plan.
type planDoc struct {
	Format   int              `json:"format"`
	Hash     string           `json:"hash"`
	Mode     string           `json:"mode"`
	Changes  []plan.Change    `json:"changes"`
	Brackets []plan.Bracket   `json:"brackets"`
	Checks   []checks.Finding `json:"checks"`
	Reboots  planReboots      `json:"reboots"`
	Notes    []string         `json:"notes"`
	Stages   int              `json:"stages"`
	APICalls int              `json:"api_calls"`
}

type planReboots struct {
	Hosts int `json:"hosts"`
	VMs   int `json:"vm_power_cycles"`
}

func planDocument(p *planned, calls int) planDoc {
	n := p.plan.Ceiling()
	found, _ := checks.Applied(p.findings)
	return planDoc{
		Format: planFormat, Hash: p.plan.Hash(), Mode: p.plan.Mode, Changes: append([]plan.Change{}, p.plan.Changes...),
		Brackets: append([]plan.Bracket{}, p.plan.Brackets...),
		Checks:   found, Reboots: planReboots{n.HostReboots, n.PowerCycles},
		Notes: append([]string{}, p.plan.Notes...), Stages: p.plan.Stages, APICalls: calls,
	}
}

func printPlan(w, lines io.Writer, output string, p *plan.Plan, doc planDoc) error {
	switch output {
	case "json":
		return plain.WriteJSON(w, doc)
	case "markdown":
		return plain.Markdown(w, p)
	}
	return plain.Plan(lines, p)
}

func writePlanFile(path string, doc planDoc) error {
	if err := console.Replaceable("out", path); err != nil {
		return err
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(path, append(b, '\n'), 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return backends.Permanentf("", "name a file in a writable directory", "the plan could not be written: %w", err)
	}
	return nil
}

// savedPlan reads the output of plan --out. If the hash in the file does not match its content, it was modified and is refused.
func savedPlan(path string) (*planDoc, error) {
	b, err := backends.InputPlan.ReadFile(path)
	if err != nil {
		return nil, console.Usage(planAgain, "plan: %v", err)
	}
	return parsePlan(b, path)
}

const planAgain = "create one with: rdma-setup plan -f answers.yaml --out FILE"

// parsePlan does the same with what was read of the file.
func parsePlan(b []byte, path string) (*planDoc, error) {
	if err := backends.PlanJSON.Check(b); err != nil {
		return nil, console.Usage(planAgain, "plan: %v", err)
	}
	var doc planDoc
	err := json.Unmarshal(b, &doc)
	if err == nil && doc.Hash == "" {
		err = errors.New("it has no hash")
	}
	if err != nil {
		return nil, console.Usage(planAgain, "%s is not a plan: %v", path, err)
	}
	if doc.Format != planFormat {
		return nil, console.Usage(planAgain, "%s was saved by another version of rdma-setup", path)
	}
	if sum := (plan.Plan{Mode: doc.Mode, Changes: doc.Changes, Brackets: doc.Brackets}).Hash(); sum != doc.Hash {
		return nil, console.Usage("Do not edit a saved plan. Change the answers, then "+planAgain,
			"%s was changed after it was saved: its content has the hash %s, not %s", path, sum, doc.Hash)
	}
	return &doc, nil
}

// A planDiff compares the plan with that of another file: a saved plan, or answers, which are planned too.
type planDiff struct {
	file    string
	saved   *planDoc         // nil: the file contains answers
	answers *answers.Answers // nil: the file is a saved plan
}

// openDiff reads the file of --diff before anything is connected; nil if there is none.
func openDiff(file string, f *planFlags, output string) (*planDiff, error) {
	switch {
	case file == "":
		return nil, nil
	case file == "-":
		return nil, console.Usage("use an answers file, or a plan saved with plan --out", "--diff does not read stdin")
	case output == "markdown":
		return nil, console.Usage("write -o text or -o json", "--diff prints -o text and -o json only")
	}
	b, err := backends.InputPlan.ReadFile(file)
	if err != nil {
		return nil, console.Usage("use an answers file, or a plan saved with plan --out", "--diff: %v", err)
	}
	d := &planDiff{file: file}
	var is struct {
		Hash    json.RawMessage `json:"hash"`
		Changes json.RawMessage `json:"changes"`
	}
	if json.Unmarshal(b, &is) == nil && (is.Hash != nil || is.Changes != nil) {
		d.saved, err = parsePlan(b, file)
		return d, err
	}
	if d.answers, err = answers.Load(bytes.NewReader(b), file); err == nil {
		f.into(d.answers)
	}
	return d, err
}

// fits refuses answers about another vCenter.
func (d *planDiff) fits(cmd *cobra.Command, s *session.Session) error {
	if d == nil || d.answers == nil {
		return nil
	}
	return s.Serves(cmd, d.answers, d.file)
}

// A diffDoc is the documented JSON of plan --diff: before is the file of --diff, after the new plan.
type diffDoc struct {
	Same   bool     `json:"same"` // the hashes are equal
	Before diffSide `json:"before"`
	After  diffSide `json:"after"`
	plan.Diff
	APICalls int `json:"api_calls"`
}

type diffSide struct {
	Hash    string      `json:"hash"`
	Mode    string      `json:"mode"`
	Changes int         `json:"changes"`
	Reboots planReboots `json:"reboots"`
}

// show prints how the plan p differs from that of the file.
func (d *planDiff) show(ctx context.Context, s *session.Session, f planFlags, p *planned, output string, detailed bool) error {
	before, err := d.plan(ctx, s, f)
	if err != nil {
		return err
	}
	doc := diffDoc{
		Same: before.Hash() == p.plan.Hash(), Before: diffSideOf(before), After: diffSideOf(p.plan),
		Diff: plan.Compare(before, p.plan), APICalls: s.VC.Calls(),
	}
	err = console.Page(s.Env, func(w io.Writer) error {
		if output == "json" {
			return plain.WriteJSON(w, doc)
		}
		return plain.Diff(w, d.file, before, p.plan)
	})
	if err == nil && detailed && !doc.Same {
		err = console.Exit(console.ExitChanges)
	}
	return err
}

func diffSideOf(p *plan.Plan) diffSide {
	n := p.Ceiling()
	return diffSide{Hash: p.Hash(), Mode: p.Mode, Changes: len(p.Changes), Reboots: planReboots{n.HostReboots, n.PowerCycles}}
}

// plan returns the plan of the file: as saved, or planned now with the same flags.
func (d *planDiff) plan(ctx context.Context, s *session.Session, f planFlags) (*plan.Plan, error) {
	if d.saved != nil {
		return &plan.Plan{Mode: d.saved.Mode, Changes: d.saved.Changes, Brackets: d.saved.Brackets, Stages: d.saved.Stages}, nil
	}
	s.Leave()
	p, err := makePlan(ctx, s, d.answers, f)
	if err != nil {
		_ = plain.Printf(s.Env.Stderr, "%s cannot be planned:\n", d.file)
		return nil, err
	}
	return p.plan, nil
}
