package cmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// replaceable refuses a name for --out that is a device, a pipe or a directory: files are written beside it and put in its
// place, which would take /dev/stdout away from everybody.
func replaceable(path string) error {
	at, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(at)
	if err == nil && !info.Mode().IsRegular() || strings.HasPrefix(at, "/dev/") || strings.HasPrefix(at, "/proc/") {
		return usage("name a file; without --out it goes to stdout where that makes sense", "--out %s is no file", path)
	}
	return nil
}
