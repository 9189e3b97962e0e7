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

// YesNo returns the word for yes or no.
func YesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
