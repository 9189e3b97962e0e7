package cmd

import (
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// What has moved between the end of a run and its rollback was moved by others: their attempt has records of its own. An attempt that was
// cut off is continued.
func TestAttempts(t *testing.T) {
	of := func(types ...journal.Type) (all []journal.Record) {
		for _, t := range types {
			all = append(all, journal.Record{Type: t})
		}
		return all
	}
	const begin, opening, result = journal.TypeBegin, journal.TypeOpening, journal.TypeResult
	for _, tt := range []struct {
		name  string
		all   []journal.Record
		since int // records of the attempt
		ended bool
	}{
		{"a run", of(begin, opening, result), 3, true},
		{"a run that was killed", of(begin, opening), 2, false},
		{"killed, then continued", of(begin, opening, begin, opening, result), 5, true},
		{"ended, then rolled back", of(begin, opening, result, begin, opening, opening), 3, false},
		{"ended, a rollback that was killed, and another", of(begin, result, begin, opening, begin, result), 4, true},
		{"nothing", nil, 0, false},
		{"interrupted, then continued", []journal.Record{{Type: begin}, {Type: result, Status: "interrupted"}, {Type: begin}}, 3, false},
		{"ended by a lost vCenter, then continued", []journal.Record{{Type: begin}, {Type: result, Status: "partial", Err: "gone"}, {Type: begin},
			{Type: result}}, 4, true},
	} {
		if since, ended := attempt(tt.all); len(since) != tt.since || ended != tt.ended {
			t.Errorf("%s: %d records, ended %t", tt.name, len(since), ended)
		}
	}
}
