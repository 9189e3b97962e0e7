package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends"
)

// ErrNotBegun says that a journal has no header: the run was killed before it began, nothing was changed.
var ErrNotBegun = errors.New("the run was never begun: its journal has no header")

type line struct {
	CRC string          `json:"crc"`
	Rec json.RawMessage `json:"rec"`
}

func castagnoli(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// encode gives a record's line with its newline.
func encode(r Record) ([]byte, error) {
	rec, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("journal record of %q: %w", r.Node, err)
	}
	return fmt.Appendf(nil, "{\"crc\":%q,\"rec\":%s}\n", castagnoli(rec), rec), nil
}

func decode(b []byte) (Record, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return Record{}, err
	}
	if sum := castagnoli(l.Rec); sum != l.CRC {
		return Record{}, fmt.Errorf("check sum %s instead of %s", sum, l.CRC)
	}
	var r Record
	err := json.Unmarshal(l.Rec, &r)
	return r, err
}

// Parse reads a journal. A last record that was not written to its end is dropped with a note: no deed was begun on
// its strength. Any other damage, another version and a missing header (ErrNotBegun) are errors.
func Parse(r io.Reader) (*State, error) {
	s := &State{}
	in := bufio.NewReaderSize(r, 1<<16)
	var torn error
	for n := 1; ; n++ {
		b, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the journal: %w", err)
		}
		if torn != nil && len(bytes.TrimSpace(b)) > 0 {
			return nil, damaged(n-1, torn)
		}
		if len(b) == 0 {
			break
		}
		ended := b[len(b)-1] == '\n'
		rec, bad := decode(b)
		switch {
		case bad != nil:
			torn = bad
		case !ended:
			torn = io.ErrUnexpectedEOF
		default:
			if err := s.add(rec); err != nil {
				return nil, damaged(n, err)
			}
			s.size += int64(len(b))
		}
		if !ended {
			break
		}
	}
	if len(s.Records) == 0 {
		return nil, ErrNotBegun
	}
	if torn != nil {
		s.Notes = append(s.Notes, "the last record of the journal was not written to its end and is dropped; the deed that it announced was not begun")
	}
	return s, nil
}

// add appends a record that was read or has just been written.
func (s *State) add(r Record) error {
	if want := int64(len(s.Records) + 1); r.Seq != want {
		return fmt.Errorf("record %d stands where %d belongs", r.Seq, want)
	}
	if first := len(s.Records) == 0; first != (r.Type == TypeHeader && r.Header != nil) {
		return fmt.Errorf("record %d is of type %q", r.Seq, r.Type)
	}
	if r.Header != nil {
		if r.Header.Version != Version {
			return backends.Errorf(backends.KindRefused, "", "Use the rdma-setup that began the run.",
				"the journal is of version %d, this program reads version %d", r.Header.Version, Version)
		}
		s.Header = *r.Header
	}
	s.Records = append(s.Records, r)
	return nil
}

func damaged(n int, err error) error {
	if backends.KindOf(err) == backends.KindRefused {
		return err
	}
	return backends.Errorf(backends.KindRefused, "",
		"Restore the file from a backup; without it, look at what the run changed in its report and plan again.",
		"the journal is damaged at line %s: %w", strconv.Itoa(n), err)
}

// Read reads the journal of a run without opening it for writing.
func Read(root, run string) (*State, error) {
	f, err := openFile(root, run, "journal.jsonl", os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	s, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return s, nil
}

func openFile(root, run, name string, flag int) (*os.File, error) {
	if err := checkRun(run); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(runDir(root, run))
	if errors.Is(err, os.ErrNotExist) {
		return nil, backends.Errorf(backends.KindUsage, "", "list the runs with: rdma-setup runs", "there is no run %s", run)
	}
	if err != nil {
		return nil, stateError(root, err)
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
