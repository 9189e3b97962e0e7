package console

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
)

// OutputFlag adds -o with fixed choices; the first is the default. Any other word is a usage error.
func OutputFlag(c *cobra.Command, into *string, formats ...string) {
	c.Flags().VarP(&Choice{Into: into, From: formats}, "output", "o", "output format: "+strings.Join(formats, ", "))
	*into = formats[0]
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// A Choice is a flag whose value is one of a list.
type Choice struct {
	Into *string  // the selected word; its initial value is the default
	From []string // the list
}

// String implements pflag.Value.
func (c *Choice) String() string {
	if c.Into == nil {
		return ""
	}
	return *c.Into
}

// Type implements pflag.Value.
func (c *Choice) Type() string { return "format" }

// Set implements pflag.Value.
func (c *Choice) Set(s string) error {
	if !slices.Contains(c.From, s) {
		return fmt.Errorf("use one of %s", strings.Join(c.From, ", "))
	}
	*c.Into = s
	return nil
}

// Replaceable refuses a name for --out that is a device, a pipe or a directory: files are replaced atomically, which would
// replace /dev/stdout for everyone.
func Replaceable(path string) error {
	at, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(at)
	if err == nil && !info.Mode().IsRegular() || strings.HasPrefix(at, "/dev/") || strings.HasPrefix(at, "/proc/") {
		return Usage("set --out to a file; without --out, output goes to stdout where possible", "--out %s is not a file", path)
	}
	return nil
}

// readable is the mode of report files: others may read them, such as a monitoring agent.
const readable = 0o644

// RenderTo writes to stdout, through the pager if the output is long, or atomically to a file if one is named.
func RenderTo(e *Env, path string, render func(io.Writer) error) error {
	if path == "" {
		return Page(e, render)
	}
	if err := Replaceable(path); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(readable))
	if err == nil {
		defer f.Cleanup()
		if bad := render(f); bad != nil {
			return bad
		}
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return NotWritable(path, err)
	}
	return nil
}

// NotWritable is the error about a file that cannot be written.
func NotWritable(path string, err error) error {
	return backends.Errorf(backends.KindPermanent, "", "name a file in a writable directory", "%s cannot be written: %w", path, err)
}
