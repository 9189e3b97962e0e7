package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Summary describes a run in a list.
type Summary struct {
	Run     string    `json:"run"`
	Made    time.Time `json:"made"`
	Mode    string    `json:"mode"`
	URL     string    `json:"url"`
	VCenter string    `json:"vcenter"`

	Simulated bool `json:"-"`
	// Status is done, unchanged, partial, failed, interrupted, running, "rolled back", "not begun" or unreadable.
	Status   string         `json:"status"`
	Phase    Phase          `json:"phase"`
	Changed  bool           `json:"changed"`          // an operation was started
	Counts   map[string]int `json:"counts,omitempty"` // changes by how they ended
	Attempts int            `json:"attempts"`
	Ended    time.Time      `json:"ended,omitzero"` // time of the last record
	Err      string         `json:"error,omitempty"`
}

// Runs returns the runs of a state directory, the latest last. Unreadable ones have an error.
func Runs(root string) ([]Summary, error) {
	var out []Summary
	err := eachRun(root, func(run string, s *State, err error) { out = append(out, summary(root, run, s, err)) })
	return out, err
}

// eachRun reads the runs of a state directory, the latest last.
func eachRun(root string, with func(run string, s *State, err error)) error {
	entries, err := os.ReadDir(filepath.Join(root, "runs")) // sorted by id, not by the clock in the header: see NextRun
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return stateError(root, err)
	}
	for _, e := range entries {
		if _, is := madeOf(e.Name()); is && e.IsDir() {
			s, err := Read(root, e.Name())
			with(e.Name(), s, err)
		}
	}
	return nil
}

// Changes reads the runs that changed something on a vCenter, the latest last. Unreadable ones are left out.
func Changes(root, vcenter string, with func(*State)) error {
	return eachRun(root, func(_ string, s *State, err error) {
		if err == nil && s.Header.VCenter == vcenter && s.Changed() {
			with(s)
		}
	})
}

// Summarize reads the description and the status of a run. If it cannot be read, Status and Err say so.
func Summarize(root, run string) Summary {
	s, err := Read(root, run)
	return summary(root, run, s, err)
}

func summary(root, run string, s *State, err error) Summary {
	sum := Summary{Run: run}
	// If the header is missing, the id still contains the time.
	sum.Made, _ = madeOf(run)
	switch {
	case errors.Is(err, ErrNotBegun):
		sum.Status = "not begun"
		return sum
	case err != nil:
		sum.Status, sum.Err = unreadable, err.Error()
		return sum
	}
	last := s.Records[len(s.Records)-1]
	sum.Made, sum.Mode, sum.URL, sum.VCenter = s.Header.Made, s.Header.Mode, s.Header.URL, s.Header.VCenter
	sum.Simulated = s.Header.Simulated
	sum.Phase, sum.Changed, sum.Attempts, sum.Ended = s.Phase(), s.Changed(), s.Attempts(), last.Time
	switch r := s.Result(); {
	case Running(root, s.Header.VCenter, run):
		sum.Status, sum.Ended = "running", time.Time{}
	case r == nil:
		sum.Status = "interrupted"
	default:
		sum.Status, sum.Counts = r.Status, r.Counts
		if s.Phase() == PhaseRollback && s.Finished() {
			sum.Status = "rolled back"
		}
	}
	return sum
}

// LastChanged returns the id of the latest run that changed something: the default of resume and rollback. fruitless is the id of
// the latest run of all if it was interrupted or failed before its first change, else empty. If a later run, or a run whose
// position is unknown, cannot be read, it may be the one that is meant: then the error is of kind refused. Of the readable runs only
// those count that all of meant accept.
func LastChanged(root string, meant ...func(Summary) bool) (run, fruitless string, err error) {
	runs, err := Runs(root)
	if err != nil {
		return "", "", err
	}
	runs = slices.DeleteFunc(runs, func(s Summary) bool {
		return s.Status != unreadable && slices.ContainsFunc(meant, func(is func(Summary) bool) bool { return !is(s) })
	})
	if err := strayRun(root); err != nil {
		return "", "", err
	}
	if n := len(runs); n > 0 && !runs[n-1].Changed && slices.Contains([]string{"interrupted", "failed", "partial"}, runs[n-1].Status) {
		fruitless = runs[n-1].Run
	}
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i].Status == unreadable {
			return "", "", notMeant(runs, i)
		}
		if runs[i].Changed {
			return runs[i].Run, fruitless, nil
		}
	}
	hint := "begin one with: rdma-setup apply -f answers.yaml"
	if fruitless != "" {
		hint = "The latest run ended before its first change. To continue it, name it: rdma-setup resume " + fruitless
	}
	return "", fruitless, backends.Usagef("", hint, "no run has changed anything yet")
}

const unreadable = "unreadable"

// notMeant returns the error for an unreadable run that might be the last one that changed something.
func notMeant(runs []Summary, at int) error {
	bad := runs[at]
	hint := "Name the run. To roll back what can be proven of this one: rdma-setup rollback " + bad.Run + " --salvage"
	for i := at - 1; i >= 0; i-- {
		if runs[i].Changed {
			hint += ". To roll back the run before it: rdma-setup rollback " + runs[i].Run
			break
		}
	}
	return backends.Refusedf("", hint, "%s cannot be read, and it may be the last run that changed something: %s", bad.Run,
		bad.Err)
}

// strayRun fails if a directory that is not a valid run has a journal: it was renamed or copied there.
func strayRun(root string) error {
	names, err := InvalidEntries(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(root, "runs", name, "journal.jsonl")); err == nil {
			return backends.Refusedf("", "Name the run (rdma-setup runs lists them), or move "+filepath.Join(root, "runs", name)+
				" away.",
				"%q has a journal but not the name of a run, and it may be the last run that changed something", name)
		}
	}
	return nil
}

// LeftOff returns the VMs of a vCenter that runs of this state directory have shut down and left off intentionally, or still keep
// off, with the time of the last record about it.
func LeftOff(root, vcenter string) map[string]time.Time {
	out := map[string]time.Time{}
	_ = Changes(root, vcenter, func(s *State) { // a state directory that cannot be read has no runs of this program
		for _, r := range s.Records {
			if r.Kind != string(backends.BracketVMPower) {
				continue
			}
			switch {
			case r.Type == TypeOpening, r.Type == TypeOpened, r.Type == TypeClosing,
				r.Type == TypeClosed && slices.Contains(r.Found, backends.ValueOf("poweredOff")):
				out[r.Target.Name] = r.Time
			case r.Type == TypeClosed:
				delete(out, r.Target.Name)
			}
		}
	})
	return out
}
