package journal

// A Salvage says what was found when a damaged journal was read: which lines were not intact, and which settings the run may
// have touched without an intact record of what they were before.
type Salvage struct {
	From     string     `json:"from"` // name of the damaged journal, kept beside this one
	Lines    []BadLine  `json:"lines"`
	Unproven []Unproven `json:"unproven"`
}

// A BadLine is a line that was not believed.
type BadLine struct {
	Line int    `json:"line"`
	Why  string `json:"why"`
}

// An Unproven setting may have been changed by the run; what it was before is not known.
type Unproven struct {
	Node string `json:"node"`
	Why  string `json:"why"`
}
