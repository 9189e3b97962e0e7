package cmd

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// about says what each file of an archive is.
var about = map[string]string{
	"README.txt":      "this text",
	"plan.json":       "the plan of the run: every change with its target, current value, requested value and reason",
	"journal.jsonl":   "what the run recorded before and after each operation, one JSON document per line: the values before the run, the result of each operation, and the answers",
	"log.jsonl":       "the events of the run with their times, one JSON document per line; with --log-level debug also every vCenter call, SSH login and remote command",
	"report.json":     "the report of the run: changes, checks and measurements; an unfinished run has none",
	"versions.json":   "the versions of rdma-setup, Go and the libraries, and the platform",
	"environment.txt": "the environment variables that rdma-setup reads; of user names and secrets only the names of the variables",
}

// readme describes the archive: the run with its command and exit code as far as its journal has them, and each file.
func (s *support) readme(files []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Archive for a bug report, made at %s by rdma-setup support, version %s.\n\n", s.env.Made().UTC().Format(time.RFC3339), s.env.Version)
	if s.run == "" {
		fmt.Fprintln(&b, "It contains no run, because no run has changed anything.")
	} else {
		s.describeRun(&b)
	}
	fmt.Fprintf(&b, "\nUser names and secrets are removed. Names of hosts and VMs and addresses are kept.\n\nFiles:\n")
	for _, name := range files {
		fmt.Fprintf(&b, "  %-16s %s\n", name, about[name])
	}
	return b.String()
}

// describeRun writes what the journal says about the run.
func (s *support) describeRun(b *strings.Builder) {
	st, err := journal.Read(s.set.StateDir, s.run)
	if err != nil {
		fmt.Fprintf(b, "Run:        %s\nIts journal cannot be read: %v\n", s.run, err)
		return
	}
	sum := journal.Summarize(s.set.StateDir, s.run)
	fmt.Fprintf(b, "Run:        %s, mode %s, started at %s by rdma-setup %s\n", s.run, sum.Mode, sum.Made.UTC().Format(time.RFC3339), st.Header.Tool)
	if st.Header.Simulated {
		fmt.Fprintln(b, "Site:       a lab; everything is simulated")
	}
	command := "rdma-setup apply"
	for _, name := range slices.Sorted(maps.Keys(st.Header.Options)) {
		value := st.Header.Options[name]
		var list []string
		if json.Unmarshal([]byte(value), &list) == nil {
			value = strings.Join(list, ",")
		}
		command += " --" + name + "=" + plain.ShellWord(value)
	}
	fmt.Fprintf(b, "Command:    %s (or the wizard); only the flags that affect the plan are recorded\n", command)
	if n := st.Attempts(); n > 1 {
		fmt.Fprintf(b, "Attempts:   %d; the last one was %s\n", n, map[journal.Phase]string{journal.PhaseApply: "rdma-setup resume", journal.PhaseRollback: "rdma-setup rollback"}[st.Phase()])
	}
	fmt.Fprintf(b, "Status:     %s\n", sum.Status)
	if r := st.Result(); r != nil {
		fmt.Fprintf(b, "Exit code:  %d for the changes; the command exits with another code if measurements or checks fail afterwards\n", engine.Status(r.Status).Exit())
	}
}
