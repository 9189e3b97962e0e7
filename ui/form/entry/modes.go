package entry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// ChangeMode sets the defaults of the current mode for answers that still had the defaults of the previous one.
func ChangeMode(a *answers.Answers, before answers.Mode) {
	if a.Mode != before && a.QoS == answers.Default(before).QoS {
		a.QoS = answers.Default(a.Mode).QoS
	}
}

// Modes are the ways in which guests get RDMA.
func Modes() []Offer {
	return []Offer{{string(answers.PVRDMA), "paravirtual adapter; keeps vMotion and snapshots"},
		{string(answers.SRIOV), "a virtual function of the NIC; near bare metal"},
		{string(answers.GPUDirect), "GPU and NIC passed through, peer to peer"}}
}

// costs are rows with the cost of each mode, in the order of the list.
var costs = [...][4]string{
	{"", "PVRDMA", "SR-IOV", "GPUDirect"},
	{"host reboots", "0 (1 with PFC)", "up to 2", "0 or 1"},
	{"VM power cycle", "yes", "yes", "yes"},
	{"memory", "fully reserved", "fully reserved", "fully reserved"},
	{"vMotion, DRS", "kept", "lost", "lost"},
	{"snapshots, backup", "kept", "lost", "lost"},
	{"HA restart", "kept", "lost", "lost; dynamic: kept"},
	{"latency, typical", "2-8 us", "2-3 us", "2-3 us"},
}

// CostTable renders the costs; the column of one mode is highlighted.
func CostTable(t theme.Theme, m answers.Mode) string {
	column := map[answers.Mode]int{answers.PVRDMA: 1, answers.SRIOV: 2, answers.GPUDirect: 3}[m]
	var b strings.Builder
	for _, row := range costs {
		line := t.Quiet.Render(fmt.Sprintf("%-19s", row[0]))
		for i, cell := range row[1:] {
			style := t.Quiet
			if i+1 == column {
				style = t.Accent
			}
			line += style.Render(fmt.Sprintf("%-18s", cell))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

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
