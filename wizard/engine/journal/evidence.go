package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
)

// complete compares a journal with the log of its run. The log mentions an operation only after the journal has announced it, so
// additional operations in the log show that records at the end of the journal are missing. A missing log proves nothing.
func (s *State) complete(root, run string) error {
	lost, err := s.lost(root, run)
	if err != nil || len(lost) == 0 {
		return err
	}
	if s == nil {
		return damage(run, "run %s: the journal has no records, but the log of the run has %d operations (the first: %s)", run, len(lost), lost[0])
	}
	return damage(run, "records are missing at the end of the journal: the log of the run has %d operations that the journal does not have (the first: %s)", len(lost), lost[0])
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
				if node := strings.TrimPrefix(e.Node, "open "); node != "" && !known[node] {
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
