package cmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func newParseCmd(e *console.Env) *cobra.Command {
	var list bool
	var output string
	j := judging{mode: string(answers.SRIOV)}
	c := &cobra.Command{
		Use:   "parse TOOL [FILE]",
		Short: "Turn a tool's output into JSON",
		Long: `Turn the output of a tool that rdma-setup itself reads, such as ibv_devinfo, lspci or perftest (FILE, else stdin), into JSON.
Exit 1 when the tool failed or the text is not understood.

With --judge the output of a perftest client is judged by the rules of the report: bandwidth and latency at every
message size, for the mode and the speed of the link. The JSON then has "verdict" (pass, warn, fail or unknown) and "hint".
Exit 1 when the verdict is fail.`,
		Args: cobra.MaximumNArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return toolNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list && output == "json" {
				return plain.WriteJSON(e.Stdout, map[string]any{"tools": toolNames()})
			}
			if list {
				for _, name := range toolNames() {
					fmt.Fprintln(e.Stdout, name)
				}
				return nil
			}
			if len(args) == 0 {
				return console.Usage("list them with: rdma-setup parse --list", "which tool printed it?")
			}
			if _, ok := transcript.Lookup(args[0]); !ok {
				if err := console.Removed("parse " + args[0]); err != nil {
					return err
				}
				return console.Usage(nearestTool(args[0]), "unknown tool %q", args[0])
			}
			for _, name := range []string{"mode", "link-gbps"} {
				if !j.on && cmd.Flags().Changed(name) {
					return console.Usage("add --judge, or leave --"+name+" out", "--%s has no effect without --judge", name)
				}
			}
			if err := j.check(args[0]); err != nil {
				return err
			}
			in := e.Stdin
			if len(args) == 2 && args[1] != "-" {
				f, err := openText(args[1])
				if err != nil {
					return console.Usage("pass a file with the tool's output, or pipe the output in", "%v", err)
				}
				defer f.Close()
				in = f
			}
			if j.on {
				return j.judge(e.Stdout, args[0], in)
			}
			defer e.Collect(0, parseMemory)()
			return parseTool(e.Stdout, args[0], in)
		},
	}
	c.Flags().BoolVar(&list, "list", false, "name the tools")
	c.Flags().VarP(&console.Choice{Into: &output, From: []string{"text", "json"}}, "output", "o",
		"format of --list: text or json; parsed output is always JSON")
	c.Flags().BoolVar(&j.on, "judge", false, "judge a bandwidth or latency test by the rules of the report")
	c.Flags().Var(&console.Choice{Into: &j.mode, From: []string{string(answers.SRIOV), string(answers.PVRDMA), string(answers.GPUDirect)}},
		"mode", "with --judge: sriov, pvrdma or gpudirect")
	c.Flags().Float64Var(&j.gbps, "link-gbps", 0, "with --judge: speed of the slower of the two host ports")
	return c
}

func toolNames() []string {
	return plain.Mapped(transcript.Tools(), func(t transcript.Tool) string { return t.ID })
}

// nearestTool is the hint for an unknown tool: the one that was probably meant. Ids are the command's words joined by '_', in any
// spelling.
func nearestTool(id string) string {
	id = strings.NewReplacer(" ", "_", "-", "_").Replace(id)
	return console.Meant(id, toolNames(), "%s? rdma-setup parse --list shows all", "list the tools with: rdma-setup parse --list")
}

// openText opens a file that can be read to its end: not a directory.
func openText(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("open %s: is a directory", name)
	}
	return f, nil
}

// parseMemory is the memory limit for reading a text: the garbage collector works harder near it.
const parseMemory = 80 << 20

func parseTool(w io.Writer, id string, in io.Reader) error {
	res, err := transcript.Parse(id, in)
	if err != nil {
		return err
	}
	if err := plain.WriteForeignJSON(w, res); err != nil {
		return err
	}
	if res.Failed() {
		return console.Exit(console.ExitFailed)
	}
	return nil
}

// judging holds the flags of parse --judge.
type judging struct {
	on   bool
	mode string
	gbps float64
}

// mostGbps is more than any port supports.
const mostGbps = 1e6

func (j judging) check(tool string) error {
	switch {
	case !j.on:
		return nil
	case !perftest.Recordable(tool):
		return console.Usage("use ib_send_bw, ib_write_bw, ib_read_bw or their _lat variants", "--judge does not support the output of %s", tool)
	case math.IsNaN(j.gbps) || j.gbps < 0 || j.gbps > mostGbps:
		return console.Usage("set the speed of the slower host port, such as --link-gbps 100", "--link-gbps %g is not a speed", j.gbps)
	}
	return nil
}

// A verdict is what parse --judge adds to the fields of the tool.
type verdict struct {
	Verdict      perftest.Verdict `json:"verdict"`
	Hint         string           `json:"hint"`
	Why          string           `json:"why,omitempty"` // the reason for the expectation
	ExpectedGbps float64          `json:"expected_gbps,omitempty"`
	AchievedGbps float64          `json:"achieved_gbps,omitempty"`
	ExpectedUs   float64          `json:"expected_us,omitempty"`
	AchievedUs   float64          `json:"achieved_us,omitempty"`
}

// judge prints the typed value of a text with a verdict.
func (j judging) judge(w io.Writer, tool string, in io.Reader) error {
	text, err := scan.Read(in)
	if err != nil {
		return err
	}
	res, err := transcript.Parse(tool, bytes.NewReader([]byte(text)))
	if err != nil {
		return err
	}
	m := perftest.Recorded(tool, text, j.mode, int(math.Round(j.gbps*1000)))
	m.Hint = cmp.Or(m.Hint, m.Error)
	both, err := merged(res, verdict{m.Verdict, m.Hint, m.Why, m.ExpectedGbps, m.AchievedGbps, m.ExpectedUs, m.AchievedUs})
	if err != nil {
		return err
	}
	if err := plain.WriteForeignJSON(w, both); err != nil {
		return err
	}
	if res.Failed() || m.Verdict == perftest.VerdictFail {
		return console.Exit(console.ExitFailed)
	}
	return nil
}

// merged returns one JSON object with the fields of both.
func merged(a, b any) (json.RawMessage, error) {
	first, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	second, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return append(append(first[:len(first)-1], ','), second[1:]...), nil
}
