package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Salvage is what was found in a damaged journal: the lines that were rejected, and the settings that the run may have touched
// without an intact record of their previous state.
type Salvage struct {
	Lines    []BadLine  `json:"lines"`
	Unproven []Unproven `json:"unproven"`
}

// A BadLine is a line that was rejected.
type BadLine struct {
	Line int    `json:"line"`
	Why  string `json:"why"`
}

// An Unproven setting or bracket may have been changed by the run; its previous state is unknown.
type Unproven struct {
	Node string `json:"node"`
	Why  string `json:"why"`
}

// An Announced is a change or bracket in the plan of the run. From is the value that a change expected to find.
type Announced struct {
	Node string
	From backends.Value
}

// Salvage returns what an earlier recovery of the journal found; nil for a journal that was never damaged.
func (s *State) Salvage() *Salvage {
	for _, r := range s.Records {
		if r.Salvage != nil {
			return r.Salvage
		}
	}
	return nil
}

// Recovered is the content of the intact records of a damaged journal.
type Recovered struct {
	State   *State
	Salvage *Salvage

	records []Record
}

// Recover reads the intact records of a damaged journal. announced is the content of the run's saved plan; otherwise is used
// instead of a damaged header. Nothing is written before Save.
func Recover(root, run string, announced []Announced, otherwise *Header) (*Recovered, error) {
	lines, err := recoverable(root, run)
	if err != nil {
		return nil, err
	}
	r := &recovery{found: &Salvage{}, seen: map[int64]bool{}}
	for _, l := range lines {
		r.take(l)
	}
	slices.SortStableFunc(r.records, func(a, b Record) int { return int(a.Seq - b.Seq) })
	if len(r.records) == 0 || r.records[0].Type != TypeHeader {
		if otherwise == nil {
			return nil, backends.Refusedf("", "Add the answers of the run with -f: they name its hosts and VMs.",
				"run %s: the first line of the journal, which holds the answers of the run, is damaged", run)
		}
		otherwise.Run = run
		r.records = append([]Record{{Type: TypeHeader, Header: otherwise}}, r.records...)
	}
	lost, err := (&State{Records: r.records}).lost(root, run)
	if err != nil {
		return nil, err
	}
	r.judge(announced, lost)
	return r.rebuilt()
}

func recoverable(root, run string) ([]scanned, error) {
	f, err := openFile(root, run, "journal.jsonl", os.O_RDONLY)
	if errors.Is(err, ErrNotBegun) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines, _, err := scan(f, run)
	return lines, err
}

// recovery collects the intact records.
type recovery struct {
	records []Record
	seen    map[int64]bool
	found   *Salvage
	earlier []Unproven // from an earlier recovery
}

func (r *recovery) take(l scanned) {
	switch {
	case l.bad != nil:
		r.found.Lines = append(r.found.Lines, BadLine{l.n, l.bad.Error()})
	case r.seen[l.rec.Seq]:
		r.found.Lines = append(r.found.Lines, BadLine{l.n, fmt.Sprintf("it repeats record %d", l.rec.Seq)})
	case l.rec.Salvage != nil:
		r.seen[l.rec.Seq] = true
		r.earlier = append(r.earlier, l.rec.Salvage.Unproven...)
		r.found.Lines = append(r.found.Lines, l.rec.Salvage.Lines...)
	default:
		r.seen[l.rec.Seq] = true
		r.records = append(r.records, l.rec)
	}
}

// firstGap is the number of the first missing record. Bad lines outside gaps were at the end.
func (r *recovery) firstGap() int64 {
	n := int64(1)
	for r.seen[n] {
		n++
	}
	return n
}

// firstOf reports whether an intact intent must be the first of its setting. A stage announces a setting once, so an earlier
// intent would come before the record that began the stage: one missing record between the two cannot be both. A later stage of
// the same attempt may announce it again, so the record that began the attempt proves nothing.
func (r *recovery) firstOf(intent int64) bool {
	begin := int64(0)
	for _, rec := range r.records {
		if (rec.Type == TypeBegin || rec.Type == TypeStage) && rec.Seq < intent {
			begin = rec.Seq
		}
	}
	missing := 0
	for n := begin + 1; n < intent; n++ {
		if !r.seen[n] {
			missing++
		}
	}
	return r.firstGap() > begin && missing <= 1
}

// judge determines what is not proven: what was announced or done and has no intact record, and settings with a possibly damaged
// record before the first intact one, unless that one found what the plan had read. Their records are dropped.
func (r *recovery) judge(announced []Announced, lost []string) {
	r.found.Unproven = r.earlier
	gap := r.firstGap()
	last := int64(0)
	for seq := range r.seen {
		last = max(last, seq)
	}
	damaged := slices.ContainsFunc(r.found.Lines, func(b BadLine) bool { return !strings.HasPrefix(b.Why, "it repeats") })
	if gap > last && !damaged && len(lost) == 0 {
		return
	}
	for _, rec := range r.records {
		if rec.Type == TypeStage {
			announced = append(announced, AnnouncedBy(rec.Plan)...)
		}
	}
	from := map[string]backends.Value{}
	for _, a := range announced {
		if _, known := from[a.Node]; !known {
			from[a.Node] = a.From
		}
	}
	first, touched, dropped := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, rec := range r.records {
		switch {
		case rec.Type == TypeOpening:
			first[rec.Node] = true
		case rec.Type == TypeIntent && rec.Phase != PhaseRollback && !first[rec.Node]:
			first[rec.Node] = true
			if expected, known := from[rec.Node]; !r.firstOf(rec.Seq) && (!known || !expected.Known() || expected != rec.Prior) {
				dropped[rec.Node] = true
				r.unproven(rec.Node, "an earlier record of its previous value may be damaged")
			}
		case rec.Node != "":
			touched[rec.Node] = true
		}
	}
	for _, node := range lost {
		r.unproven(node, "the log of the run shows that it was changed, but its record is missing")
	}
	for _, a := range announced {
		switch {
		case first[a.Node]:
		case touched[a.Node]:
			r.unproven(a.Node, "it was changed, but the record of its previous value is damaged")
		default:
			r.unproven(a.Node, "it was planned, and its record may be one of the damaged ones")
		}
	}
	r.records = slices.DeleteFunc(r.records, func(rec Record) bool { return dropped[rec.Node] })
}

func (r *recovery) unproven(node, why string) {
	if !slices.ContainsFunc(r.found.Unproven, func(u Unproven) bool { return u.Node == node }) {
		r.found.Unproven = append(r.found.Unproven, Unproven{node, why})
	}
}

// AnnouncedBy returns the changes and brackets of a plan.
func AnnouncedBy(saved []byte) []Announced {
	var doc struct {
		Changes []struct {
			ID    string         `json:"id"`
			From  backends.Value `json:"from"`
			State bool           `json:"state"`
		} `json:"changes"`
		Brackets []struct {
			Kind   backends.BracketKind `json:"kind"`
			Target backends.Ref         `json:"target"`
		} `json:"brackets"`
	}
	if json.Unmarshal(saved, &doc) != nil {
		return nil
	}
	var out []Announced
	for _, c := range doc.Changes {
		if !c.State {
			out = append(out, Announced{c.ID, c.From})
		}
	}
	for _, b := range doc.Brackets {
		out = append(out, Announced{Node: b.Target.String() + "/" + string(b.Kind)})
	}
	return out
}

// rebuilt returns a journal of the intact records: the header, the salvage, and the rest in order with new numbers. An attempt
// without its first record begins where a record first names its phase.
func (r *recovery) rebuilt() (*Recovered, error) {
	head := r.records[0]
	own := *head.Header
	own.Version = Version
	head.Header = &own
	out := []Record{head, {Type: TypeSalvage, Time: head.Time, Salvage: r.found}}
	phase := Phase("")
	for _, rec := range r.records[1:] {
		if rec.Type != TypeBegin && rec.Phase != "" && rec.Phase != phase {
			out = append(out, Record{Type: TypeBegin, Phase: rec.Phase, Time: rec.Time})
		}
		if rec.Phase != "" {
			phase = rec.Phase
		}
		out = append(out, rec)
	}
	s := &State{}
	for i := range out {
		out[i].Seq = int64(i + 1)
		if err := s.add(out[i]); err != nil {
			return nil, err
		}
	}
	return &Recovered{State: s, Salvage: r.found, records: out}, nil
}

// Save replaces the damaged journal with the recovered one, and keeps the damaged one beside it. The caller holds the lock of the
// run's vCenter.
func (r *Recovered) Save(root string) error {
	run := r.State.Header.Run
	var text []byte
	sum := ""
	for _, rec := range r.records {
		b, own, err := encode(run, sum, rec)
		if err != nil {
			return err
		}
		text, sum = append(text, b...), own
	}
	dir, err := os.OpenRoot(Dir(root, run))
	if err != nil {
		return stateError(root, err)
	}
	defer func() { _ = dir.Close() }()
	for n := 1; ; n++ {
		err := dir.Link("journal.jsonl", fmt.Sprintf("journal.damaged-%d.jsonl", n))
		if err == nil || errors.Is(err, os.ErrNotExist) {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return stateError(root, err)
		}
	}
	if err := WriteFile(root, run, "journal.jsonl", text); err != nil {
		return err
	}
	return syncDir(Dir(root, run))
}
