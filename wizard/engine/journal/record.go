// Package journal stores what a run is about to do and its results on disk before each operation, so that a run that was killed
// at any time can be resumed or rolled back. It knows settings and values, but not the structure of a plan.
//
// A run is a directory $STATE/runs/RUN (0700) with plan.json, journal.jsonl, report.json and log.jsonl (0600). A line of the
// journal is a JSON object with a record and a sum that binds it to the run and to the previous line.
package journal

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Version is the format version that this program writes and reads. Journals of version 1 are refused: their lines are not bound
// to each other, and an unknown value was stored as text.
const Version = 2

// Type is the type of a record.
type Type string

// The types of records. An operation has a record before it (intent, opening, closing) and one after it (outcome, opened,
// closed).
const (
	TypeHeader  Type = "header"  // first line
	TypeBegin   Type = "begin"   // an attempt begins: the first, a resume, or a rollback
	TypeStage   Type = "stage"   // the plan of the stage that begins
	TypeIntent  Type = "intent"  // a change is about to be made
	TypeOutcome Type = "outcome" // the result of the change
	TypeOpening Type = "opening" // a bracket is about to be opened
	TypeOpened  Type = "opened"
	TypeClosing Type = "closing"
	TypeClosed  Type = "closed"
	TypeControl Type = "control" // an operator paused or continued the run, or skipped or retried a target: Name has the verb
	TypeResult  Type = "result"  // an attempt ended normally
	TypeSalvage Type = "salvage" // second line of a journal that was rebuilt from the intact records of a damaged one
)

// Phase distinguishes a run from its rollback.
type Phase string

// The phases.
const (
	PhaseApply    Phase = "apply"
	PhaseRollback Phase = "rollback"
)

// A Header is the first record: the description of the run.
type Header struct {
	Version     int             `json:"version"`
	Run         string          `json:"run"`
	Made        time.Time       `json:"made"`
	Tool        string          `json:"tool,omitempty"` // version of rdma-setup
	VCenter     string          `json:"vcenter"`        // instance UUID
	URL         string          `json:"url"`
	Mode        string          `json:"mode"`
	User        string          `json:"user,omitempty"` // account on this machine
	Simulated   bool            `json:"simulated,omitempty"`
	Answers     string          `json:"answers"`      // the complete text; answers contain no secrets
	AnswersHash string          `json:"answers_hash"` // SHA-256 of Answers
	PlanHash    string          `json:"plan_hash"`
	Ceiling     json.RawMessage `json:"ceiling,omitempty"` // the consent
	// Options are the flags that affect the plan (limit, skip, forced pNICs); Resume needs the same.
	Options map[string]string `json:"options,omitempty"`
}

// A Record is one line of the journal. Which fields are set depends on Type.
type Record struct {
	Seq   int64     `json:"seq"`  // 1 for the header, then consecutive; set by the journal
	Time  time.Time `json:"time"` // for display; Seq defines the order
	Type  Type      `json:"type"`
	Phase Phase     `json:"phase,omitempty"`

	Header *Header `json:"header,omitempty"` // header

	Node   string       `json:"node,omitempty"`  // id of the change or bracket
	Target backends.Ref `json:"target,omitzero"` // with Kind and Name: the setting or bracket of Node
	Kind   string       `json:"kind,omitempty"`
	Name   string       `json:"name,omitempty"`

	Prior backends.Value `json:"prior,omitzero"` // intent: as just read; opening: the state before
	To    backends.Value `json:"to,omitzero"`    // intent: the requested value; opening, closing: the state to restore
	Kept  *backends.Kept `json:"kept,omitempty"` // intent: what a Keeper recorded, or in a rollback what is restored of it; nil: no Keeper
	Left  *backends.Kept `json:"left,omitempty"` // outcome: the state of the same items afterwards; nil: not observed
	// Found is the value as read afterwards, of an outcome or a closed bracket: a list of one, or none if it could not be read, because
	// null is a value (Absent).
	Found []backends.Value `json:"found,omitempty"`
	OK    bool             `json:"ok,omitempty"` // outcome, opened, closed: successful
	Err   string           `json:"error,omitempty"`
	Hint  string           `json:"hint,omitempty"`

	Grounds string `json:"grounds,omitempty"` // outcome: the facts that caused a lasting refusal, as returned by Job.Grounds; "" otherwise

	Stage int             `json:"stage,omitempty"` // stage: counts from 1
	Plan  json.RawMessage `json:"plan,omitempty"`  // stage
	PID   int             `json:"pid,omitempty"`   // begin
	By    string          `json:"by,omitempty"`    // control: who requested it, and from where

	Status string         `json:"status,omitempty"` // result
	Counts map[string]int `json:"counts,omitempty"` // result: changes by state

	Salvage *Salvage `json:"salvage,omitempty"` // salvage
}

// Setting returns the setting of an intent or outcome.
func (r Record) Setting() backends.Setting {
	return backends.Setting{Target: r.Target, Kind: backends.Kind(r.Kind), Name: r.Name}
}

// items tracks what Keepers recorded and observed through a journal. Two settings of a target may touch the same item (a script
// that two units run). Its state before the run is the first one recorded for any of them, and its state after the run is the
// last one observed.
type items struct {
	first map[itemID]backends.Item
	owner map[itemID]string // node that recorded it first
	left  map[itemID]backends.Item
	of    map[string][]itemID // by node, in the order of the records
}

type itemID struct {
	target backends.Ref
	kind   backends.ItemKind
	name   string
}

func newItems() *items {
	return &items{first: map[itemID]backends.Item{}, owner: map[itemID]string{}, left: map[itemID]backends.Item{}, of: map[string][]itemID{}}
}

// see adds a record. After an intent the state of its items is unknown until they are observed. For a rollback it returns the
// restored ones.
func (t *items) see(r Record) {
	switch {
	case r.Type == TypeIntent && r.Phase == PhaseRollback && r.Kept != nil:
		for _, i := range r.Kept.Items {
			delete(t.left, itemID{r.Target, i.Kind, i.Name})
		}
	case r.Type == TypeIntent:
		if r.Kept != nil {
			t.record(r)
		}
		for _, id := range t.of[r.Node] {
			delete(t.left, id)
		}
	case r.Type == TypeOutcome && r.Left != nil:
		for _, i := range r.Left.Items {
			t.left[itemID{r.Target, i.Kind, i.Name}] = i
		}
	}
}

func (t *items) record(r Record) {
	if t.of[r.Node] == nil {
		t.of[r.Node] = []itemID{}
	}
	for _, i := range r.Kept.Items {
		id := itemID{r.Target, i.Kind, i.Name}
		if _, known := t.first[id]; !known {
			t.first[id], t.owner[id] = i, r.Node
		}
		if !slices.Contains(t.of[r.Node], id) {
			t.of[r.Node] = append(t.of[r.Node], id)
		}
	}
}

// share sets Kept and Left of the entries.
func (t *items) share(entries []Entry) {
	for i := range entries {
		e := &entries[i]
		ids, kept := t.of[e.Node], backends.Kept{}
		if ids == nil {
			continue
		}
		for _, id := range ids {
			if t.owner[id] != e.Node {
				continue
			}
			kept.Items = append(kept.Items, t.first[id])
			if left, known := t.left[id]; known {
				e.Left.Items = append(e.Left.Items, left)
			}
		}
		e.Kept = &kept
	}
}
