package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

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
		fmt.Fprintf(s.Env.Stderr, "%s cannot be planned:\n", backends.Clean(d.file))
		return nil, err
	}
	return p.plan, nil
}
