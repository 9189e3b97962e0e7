package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends"
)

// ErrNotBegun means that a journal has no header: the run was killed before it began, nothing was changed.
var ErrNotBegun = errors.New("the run was never begun: its journal has no header")

// sumOf returns the sum of a line, which contains one record bound to its run and to the previous line: prev repeats that line's
// sum, and sum covers run, prev and record, so that changed, removed, repeated or moved lines and lines of other runs are detected.
func sumOf(run, prev string, rec []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s", run, prev, rec)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// lineOf returns the line of a record with its newline, and its sum, which the next line repeats.
func lineOf(run, prev string, rec []byte) (text []byte, sum string) {
	sum = sumOf(run, prev, rec)
	return fmt.Appendf(nil, "{\"prev\":\"%s\",\"sum\":\"%s\",\"rec\":%s}\n", prev, sum, rec), sum
}

// partsOf returns what lineOf has put together; ok is false for any other text.
func partsOf(line []byte) (prev, sum string, rec []byte, ok bool) {
	rest, begins := bytes.CutPrefix(line, []byte(`{"prev":"`))
	p, rest, second := bytes.Cut(rest, []byte(`","sum":"`))
	s, rest, third := bytes.Cut(rest, []byte(`","rec":`))
	rec, ends := bytes.CutSuffix(rest, []byte("}\n"))
	return string(p), string(s), rec, begins && second && third && ends
}

func encode(run, prev string, r Record) (text []byte, sum string, err error) {
	rec, err := json.Marshal(r)
	if err != nil {
		return nil, "", fmt.Errorf("journal record of %q: %w", r.Node, err)
	}
	text, sum = lineOf(run, prev, rec)
	return text, sum, nil
}

// A scanned line of a journal: a record, or what is wrong with the line.
type scanned struct {
	n         int // from 1
	size      int
	prev, sum string
	rec       Record
	bad       error
}

// decode parses one complete line of a run's journal. A line that is not byte for byte the output of encode is damaged.
func decode(run string, n int, b []byte) scanned {
	out := scanned{n: n, size: len(b)}
	prev, sum, rec, ok := partsOf(b)
	if !ok {
		out.bad = errors.New("it is not a record")
		return out
	}
	if sum != sumOf(run, prev, rec) {
		out.bad = errors.New("its checksum does not match")
		return out
	}
	out.prev, out.sum = prev, sum
	out.bad = json.Unmarshal(rec, &out.rec)
	return out
}

func headerOf(b []byte) Header {
	var l struct {
		Rec struct {
			Header Header `json:"header"`
		} `json:"rec"`
	}
	if json.Unmarshal(b, &l) != nil {
		return Header{}
	}
	return l.Rec.Header
}

// scan reads the lines of a run's journal. A last line without its newline is incomplete: it is left out, and torn reports it.
// Run "" accepts the run that the first line names.
func scan(r io.Reader, run string) (lines []scanned, torn bool, err error) {
	in := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		b, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, fmt.Errorf("read the journal: %w", err)
		}
		if err != nil {
			return lines, len(b) > 0, nil
		}
		if n == 1 {
			h := headerOf(b)
			if h.Version > 0 && h.Version != Version {
				return nil, false, backends.Refusedf("", "Use the version of rdma-setup that started the run.",
					"the journal has version %d; this program reads version %d", h.Version, Version)
			}
			run = cmp.Or(run, h.Run)
			if first := decode(h.Run, 1, b); h.Run != run && first.bad == nil {
				return nil, false, backends.Refusedf("", "Restore the run's own journal.", "the journal belongs to run %s", h.Run)
			}
		}
		lines = append(lines, decode(run, n, b))
	}
}

// Parse reads a journal. A last line without its newline is dropped with a note: no operation was started based on it. Any other
// damage, another version and a missing header (ErrNotBegun) are errors.
func Parse(r io.Reader) (*State, error) { return parse(r, "") }

func parse(r io.Reader, run string) (*State, error) {
	lines, torn, err := scan(r, run)
	if err != nil {
		return nil, err
	}
	s := &State{}
	for _, l := range lines {
		err := l.bad
		if err == nil {
			err = s.follow(l)
		}
		if err != nil {
			return nil, damage(run, "the journal is damaged at line %d: %w", l.n, err)
		}
	}
	if len(s.Records) == 0 {
		return nil, ErrNotBegun
	}
	if torn {
		s.Notes = append(s.Notes,
			"the last record of the journal was not written to its end and is dropped; the operation that it announced was not begun")
	}
	return s, nil
}

// follow appends the record of a line if it is the next one.
func (s *State) follow(l scanned) error {
	if l.prev != s.sum {
		return errors.New("it does not follow the line before it")
	}
	if err := s.add(l.rec); err != nil {
		return err
	}
	s.size += int64(l.size)
	s.sum = l.sum
	return nil
}

// add appends a record that was read or has just been written.
func (s *State) add(r Record) error {
	if want := int64(len(s.Records) + 1); r.Seq != want {
		return fmt.Errorf("record %d is in the place of record %d", r.Seq, want)
	}
	if first := len(s.Records) == 0; first != (r.Type == TypeHeader && r.Header != nil) {
		return fmt.Errorf("record %d is of type %q", r.Seq, r.Type)
	}
	if r.Header != nil {
		s.Header = *r.Header
	}
	s.Records = append(s.Records, r)
	return nil
}

// ErrDamaged is in the error chain of a damaged journal.
var ErrDamaged = errors.New("the journal is damaged")

type damageError struct{ error }

func (e *damageError) Unwrap() error        { return e.error }
func (e *damageError) Is(target error) bool { return target == ErrDamaged }

func damage(run, format string, args ...any) error {
	return &damageError{backends.Refusedf("",
		"Restore the run's directory from a backup, or roll back what can be proven: rdma-setup rollback "+cmp.Or(run, "RUN")+" --salvage",
		format, args...)}
}

// Read reads the journal of a run without opening it for writing.
func Read(root, run string) (*State, error) {
	f, err := openFile(root, run, "journal.jsonl", os.O_RDONLY)
	if err != nil {
		if errors.Is(err, ErrNotBegun) {
			err = cmp.Or((*State)(nil).complete(root, run), err)
		}
		return nil, err
	}
	defer func() { _ = f.Close() }()
	s, err := parse(f, run)
	if err == nil || errors.Is(err, ErrNotBegun) {
		err = cmp.Or(s.complete(root, run), err)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return s, nil
}

func openRun(root, run string) (*os.Root, error) {
	dir, err := os.OpenRoot(Dir(root, run))
	if errors.Is(err, os.ErrNotExist) {
		return nil, backends.Usagef("", "list the runs with: rdma-setup runs", "there is no run %s", run)
	}
	if err != nil {
		return nil, stateError(root, err)
	}
	return dir, nil
}

func openFile(root, run, name string, flag int) (*os.File, error) {
	if err := checkRun(run); err != nil {
		return nil, err
	}
	dir, err := openRun(root, run)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	f, err := dir.OpenFile(name, flag|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, os.ErrNotExist) && name == "journal.jsonl" {
		return nil, ErrNotBegun
	}
	if err != nil {
		return nil, stateError(root, err)
	}
	return f, nil
}

// WaitPrefix begins the ids of nodes that only wait for a target. They are in the log of a run, and not in its journal: they change
// nothing.
const WaitPrefix = "answer/"

// complete compares a journal with the log of its run. The log mentions an operation only after the journal has announced it, so
// additional operations in the log show that records at the end of the journal are missing. A missing log proves nothing.
func (s *State) complete(root, run string) error {
	lost, err := s.lost(root, run)
	if err != nil || len(lost) == 0 {
		return err
	}
	if s == nil {
		return damage(run, "run %s: the journal has no records, but the log of the run has %d operations (the first: %s)", run, len(lost),
			lost[0])
	}
	return damage(run,
		"records are missing at the end of the journal: the log of the run has %d operations that the journal does not have (the first: %s)",
		len(lost), lost[0])
}

// lost returns the nodes that are done according to the run's log, but have no record in the journal and were not reported by a
// salvage.
func (s *State) lost(root, run string) ([]string, error) {
	f, err := ReadLog(root, run)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	known := map[string]bool{}
	if s != nil {
		for _, r := range s.Records {
			known[r.Node] = true
			if r.Salvage != nil {
				for _, u := range r.Salvage.Unproven {
					known[u.Node] = true
				}
			}
		}
	}
	var lost []string
	in := bufio.NewReaderSize(f, 1<<16)
	for {
		b, err := in.ReadBytes('\n')
		if bytes.Contains(b, []byte(`"event":"done"`)) {
			var e struct {
				Event string `json:"event"`
				Node  string `json:"node"`
			}
			if json.Unmarshal(b, &e) == nil && e.Event == "done" {
				if node := strings.TrimPrefix(e.Node, "open "); node != "" && !known[node] && !strings.HasPrefix(node, WaitPrefix) {
					known[node] = true
					lost = append(lost, node)
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return lost, nil
		}
		if err != nil {
			return nil, stateError(root, err)
		}
	}
}
