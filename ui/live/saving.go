package live

// A Saving says what to do with an existing file with other answers. One that this wizard has written is overwritten.
type Saving int

// What becomes of such a file.
const (
	AskFirst  Saving = iota // nothing is written: the error is an *Exists
	Overwrite               // it is overwritten
	Beside                  // it stays, and the answers get a free name beside it
)

// Exists is the error for an existing file with other answers.
type Exists struct {
	Path string
	Diff string // its lines that would go, with -, and those that would come, with +
}

func (e *Exists) Error() string { return e.Path + " exists with other answers" }
