package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// outputFlag adds -o with a fixed choice; the first is the default. A wrong word is a usage error.
func outputFlag(c *cobra.Command, into *string, formats ...string) {
	c.Flags().VarP(&choice{into: into, from: formats}, "output", "o", "output format: "+strings.Join(formats, ", "))
	*into = formats[0]
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// A choice is a flag that takes one word of a list.
type choice struct {
	into *string
	from []string
}

func (c *choice) String() string {
	if c.into == nil {
		return ""
	}
	return *c.into
}

func (c *choice) Type() string { return "format" }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.from, s) {
		return fmt.Errorf("want one of %s", strings.Join(c.from, ", "))
	}
	*c.into = s
	return nil
}

// writeJSON prints one indented document.
func writeJSON(w io.Writer, v any) error {
	enc := plain.JSON(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
