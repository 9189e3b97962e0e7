package entry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Components parses datastore paths, separated by commas or blanks.
func Components(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// The explanations of the questions in mode sriov.
const (
	AboutVFs        = "VFs of the chosen pNIC on each host: one for each VM, at most 127"
	AboutComponents = "MFT and NMST, if a host lacks them: /vmfs/volumes/DATASTORE/FILE.vib, .."
	AboutTuning     = "none, or any of cpu (reserved), latency (high), numa (node of the pNIC)"
	AboutLossless   = "yes once PFC, DSCP and ECN are set there; this cannot be detected"
	AboutShell      = "for card firmware over SSH, if needed; key or RDMA_SETUP_ESXI_PASSWORD"
)

// DepotPaths checks what was typed as components.
func DepotPaths(a *answers.Answers) func(string) error {
	return func(s string) error {
		few := *a
		few.SRIOV.Components = Components(s)
		return Problem(&few, "sriov.components")
	}
}

// ShellUser requires an account name.
func ShellUser(s string) error {
	if strings.TrimSpace(s) == "" || strings.ContainsAny(s, " \t@:") {
		return errors.New("enter an account of the hosts, for example root")
	}
	return nil
}

// TuningWords returns the requested tuning as text.
func TuningWords(t answers.Tuning) string {
	var words []string
	if t.ReserveCPU {
		words = append(words, "cpu")
	}
	if t.Latency == "high" {
		words = append(words, "latency")
	}
	if t.NUMA == "nic" {
		words = append(words, "numa")
	}
	return strings.Join(words, ", ")
}

// TuningOf parses that text, with commas or blanks.
func TuningOf(s string) (answers.Tuning, error) {
	t := answers.Default(answers.SRIOV).Tuning
	for _, word := range Components(s) {
		switch word {
		case "cpu", "reserve_cpu":
			t.ReserveCPU = true
		case "latency":
			t.Latency = "high"
		case "numa":
			t.NUMA = "nic"
		case "none":
		default:
			return t, fmt.Errorf("%q is none of cpu, latency, numa", word)
		}
	}
	return t, nil
}

// TuningWord requires words that TuningOf accepts.
func TuningWord(s string) error {
	_, err := TuningOf(s)
	return err
}

// AsksLossless reports whether the hosts get PFC, which needs PFC on the switch.
func AsksLossless(a *answers.Answers) bool {
	return a.Mode == answers.SRIOV && a.QoS.Lossless == answers.LosslessPFC
}

// YesNo returns the word for yes or no.
func YesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
