package live

// A Saving says what to do with an existing file with other answers. One that this wizard has written is overwritten.
type Saving int

// What to do with such a file.
const (
	AskFirst  Saving = iota // nothing is written: the error is an *Exists
	Overwrite               // it is overwritten
	Beside                  // it is kept, and the answers are saved under an unused name beside it
)

// Exists is the error for an existing file with other answers.
type Exists struct {
	Path string
	Diff string // lines that would be removed, with -, and added, with +
}

func (e *Exists) Error() string { return e.Path + " exists with other answers" }
