package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// documents are the outputs of -o json with a published schema.
var documents = []string{"answers", "discover", "plan", "rehearse", "apply", "check", "report"}

// schemaOf returns the JSON Schema of a document; for apply it is the schema of each line.
func schemaOf(document string) ([]byte, error) {
	switch document {
	case "discover":
		return plain.Schema("Inventory of rdma-setup discover -o json", backends.Inventory{}, outcome{})
	case "rehearse":
		return plain.Schema("Rehearsal of rdma-setup rehearse -o json", twin.Rehearsal{}, outcome{})
	case "plan":
		return plain.Schema("Plan of rdma-setup plan -o json", planDoc{}, outcome{})
	case "check":
		return plain.Schema("Result of rdma-setup check -o json", checkDoc{})
	case "report":
		return plain.Schema("Report of rdma-setup report -o json", report.Report{})
	case "apply":
		return plain.Schema("A line of rdma-setup apply, resume and rollback -o json", outcome{}, engine.Event{}, otherLine{})
	}
	return answers.Schema()
}

// otherLine is any line of apply that is neither the result nor an event of the engine.
type otherLine struct {
	Event string `json:"event"`
}

func newSchemaCmd(e *console.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [answers | discover | plan | rehearse | apply | check | report]",
		Short: "Print the JSON Schema of the answers, or of what a command prints with -o json",
		Args:  cobra.MaximumNArgs(1), ValidArgs: documents,
		RunE: func(_ *cobra.Command, args []string) error {
			document := append(args, "answers")[0]
			if !slices.Contains(documents, document) {
				return console.Usage("choose one of "+strings.Join(documents, ", "), "there is no schema of %q", document)
			}
			b, err := schemaOf(document)
			if err != nil {
				return err
			}
			_, err = e.Stdout.Write(append(b, '\n'))
			return err
		},
	}
}
