package cmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"math"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

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
