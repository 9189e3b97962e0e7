package form

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

const aboutTuning = "none, or any of cpu (reserved), latency (high), numa (node of the pNIC)"

// tuningWords are what was asked for, as one types it.
func tuningWords(t answers.Tuning) string {
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

// tuningOf reads them, with commas or blanks between.
func tuningOf(s string) (answers.Tuning, error) {
	t := answers.Default(answers.SRIOV).Tuning
	for _, word := range components(s) {
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

func tuningWord(s string) error {
	_, err := tuningOf(s)
	return err
}
