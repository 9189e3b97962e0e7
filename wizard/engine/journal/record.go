// Package journal keeps what a run is about to do and what became of it, on disk before the operation, so that a run that was
// killed at any instant can be resumed or rolled back. It knows settings and values, not what a plan is made of.
//
// A run is a directory $STATE/runs/RUN (0700) with plan.json, journal.jsonl, report.json and log.jsonl (0600). A line of
// the journal is a JSON object with a record and a sum that binds it to the run and to the line before it.
package journal

import (
	"encoding/json"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Version is the version of the format that this program writes and reads. Journals of version 1 are refused by it: their
// lines are not bound to each other, and a value that was not known stood as text.
const Version = 2

// Type says what a record tells.
type Type string

// The types of record. An operation has a record before (intent, opening, closing) and one after (outcome, opened, closed).
const (
	TypeHeader  Type = "header"  // first line
	TypeBegin   Type = "begin"   // an attempt begins: the first, a resume, a rollback
	TypeStage   Type = "stage"   // the plan of the stage that begins
	TypeIntent  Type = "intent"  // a change is about to be made
	TypeOutcome Type = "outcome" // what was found after it
	TypeOpening Type = "opening" // a bracket is about to be opened
	TypeOpened  Type = "opened"
	TypeClosing Type = "closing"
	TypeClosed  Type = "closed"
	TypeControl Type = "control" // an operator paused or continued the run, or skipped or retries a target: Name says which
	TypeResult  Type = "result"  // an attempt ended by itself
	TypeSalvage Type = "salvage" // second line of a journal that was made of the intact records of a damaged one
)

// Phase tells a run from its rollback.
type Phase string

// The phases.
const (
	PhaseApply    Phase = "apply"
	PhaseRollback Phase = "rollback"
)

// A Header is the first record: what the run is about.
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
	Answers     string          `json:"answers"`      // the whole text; answers hold no secrets
	AnswersHash string          `json:"answers_hash"` // SHA-256 of Answers
	PlanHash    string          `json:"plan_hash"`
	Ceiling     json.RawMessage `json:"ceiling,omitempty"` // what was consented to
	// Options are the flags that decide what is planned (limit, skip, forced pNICs); Resume needs the same.
	Options map[string]string `json:"options,omitempty"`
}

// A Record is one line of the journal. Which fields are filled depends on Type.
type Record struct {
	Seq   int64     // 1 for the header, then one more each; the journal fills it in
	Time  time.Time // for display; the order is that of Seq
	Type  Type
	Phase Phase

	Header *Header // header

	Node   string       // id of the change or bracket
	Target backends.Ref // with Kind and Name: what Node stands for
	Kind   string
	Name   string

	Prior backends.Value  // intent: as just read; opening: the state found
	To    backends.Value  // intent: what it should become; opening, closing: the state to leave behind
	Kept  *backends.Kept  // intent: what a Keeper recorded, of a rollback what is restored of it; nil: no Keeper
	Left  *backends.Kept  // outcome: the same items as observed after; nil: nobody did
	Found *backends.Value // outcome, closed: as read after; nil: could not be read
	OK    bool            // outcome, opened, closed: as wanted
	Err   string
	Hint  string

	Grounds string // outcome: what a lasting refusal rests on, as Job.Grounds gave it; "" if the failure is none

	Stage int             // stage: counts from 1
	Plan  json.RawMessage // stage
	PID   int             // begin
	By    string          // control: who asked, and from where

	Status string         // result
	Counts map[string]int // result: nodes by state

	Salvage *Salvage // salvage
}

// Setting is the setting that an intent or outcome is about.
func (r Record) Setting() backends.Setting {
	return backends.Setting{Target: r.Target, Kind: backends.Kind(r.Kind), Name: r.Name}
}

// wire is a Record in JSON. Found is a list of none or one, because null is a value: Absent.
type wire struct {
	Seq    int64            `json:"seq"`
	Time   time.Time        `json:"time"`
	Type   Type             `json:"type"`
	Phase  Phase            `json:"phase,omitempty"`
	Header *Header          `json:"header,omitempty"`
	Node   string           `json:"node,omitempty"`
	Target backends.Ref     `json:"target,omitzero"`
	Kind   string           `json:"kind,omitempty"`
	Name   string           `json:"name,omitempty"`
	Prior  backends.Value   `json:"prior,omitzero"`
	To     backends.Value   `json:"to,omitzero"`
	Kept   *backends.Kept   `json:"kept,omitempty"`
	Left   *backends.Kept   `json:"left,omitempty"`
	Found  []backends.Value `json:"found,omitempty"`
	OK     bool             `json:"ok,omitempty"`
	Err    string           `json:"error,omitempty"`
	Hint   string           `json:"hint,omitempty"`
	Ground string           `json:"grounds,omitempty"`
	Stage  int              `json:"stage,omitempty"`
	Plan   json.RawMessage  `json:"plan,omitempty"`
	PID    int              `json:"pid,omitempty"`
	By     string           `json:"by,omitempty"`
	Status string           `json:"status,omitempty"`
	Counts map[string]int   `json:"counts,omitempty"`

	Salvage *Salvage `json:"salvage,omitempty"`
}

// MarshalJSON writes only the fields that are filled.
func (r Record) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{
		r.Seq, r.Time, r.Type, r.Phase, r.Header, r.Node, r.Target, r.Kind, r.Name, r.Prior, r.To,
		r.Kept, r.Left, list(r.Found), r.OK, r.Err, r.Hint, r.Grounds, r.Stage, r.Plan, r.PID, r.By, r.Status, r.Counts, r.Salvage,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Record) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*r = Record{
		w.Seq, w.Time, w.Type, w.Phase, w.Header, w.Node, w.Target, w.Kind, w.Name, w.Prior, w.To,
		w.Kept, w.Left, first(w.Found), w.OK, w.Err, w.Hint, w.Ground, w.Stage, w.Plan, w.PID, w.By, w.Status, w.Counts, w.Salvage,
	}
	return nil
}

func list(v *backends.Value) []backends.Value {
	if v == nil {
		return nil
	}
	return []backends.Value{*v}
}

func first(l []backends.Value) *backends.Value {
	if len(l) == 0 {
		return nil
	}
	return &l[0]
}
