// Package live contains the interactive screens: the inventory picker, the run screen and the report viewer. A screen uses
// events and data, never a connection.
package live

import (
	"context"
	"os/exec"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A Login is the vCenter and the account; Password is kept in memory only.
type Login struct {
	URL, Username, Password, Thumbprint string
}

// A Fabric provides everything that the wizard reads and does. All methods may take long and are called outside the screen's
// loop; errors have a hint (backends.HintOf).
type Fabric interface {
	// Default returns the login from flags, environment and answers, with Password empty if it is not known yet.
	Default() Login
	// Simulated reports whether the vCenter is a lab.
	Simulated() bool
	// Private reports whether the login is that of the private lab of --lab, where Enter is sufficient consent, because only this
	// command uses it.
	Private(l Login) bool
	// Insecure returns what is not verified at the operator's request, a sentence each; every page shows it.
	Insecure() []string
	// Reachable tests that a vCenter responds at the address before a password is typed. If its certificate is not known, it
	// returns a *Fingerprint.
	Reachable(ctx context.Context, l Login) error
	// Connect logs in and reads the overview: hosts, pNICs, switches, VMs. Names, unless nil, is called with the names and states
	// of the hosts before the rest is read.
	Connect(ctx context.Context, l Login, names func(*backends.Inventory)) (*backends.Inventory, error)
	// Inspect reads what the answers name, or everything, checks it and returns the report. It changes nothing.
	Inspect(ctx context.Context, a *answers.Answers) (*backends.Inventory, *report.Report, error)
	// Asks sets the function for questions that come up while something runs: host keys, passwords.
	Asks(ask Ask)
	// Propose sets what the answers leave open according to the inventory: NIC speed, VMs, addresses.
	Propose(a *answers.Answers, inv *backends.Inventory) *answers.Answers
	// Choose returns which pNIC the answers select on each chosen host (device by host name); hosts without a unique choice are
	// left out.
	Choose(a *answers.Answers, inv *backends.Inventory) map[string]string
	// Survey reads the details of the chosen hosts, VMs and their guests.
	Survey(ctx context.Context, a *answers.Answers) (*backends.Inventory, error)
	// Preflight runs the checks that must pass before anything is written.
	Preflight(ctx context.Context, a *answers.Answers, inv *backends.Inventory) []checks.Finding
	// Plan computes the changes; *plan.Refused says why there is no plan.
	Plan(a *answers.Answers, inv *backends.Inventory) (*plan.Plan, error)
	// Expected returns how long the plan is expected to take: the estimate with which the run page begins, or 0 if unknown.
	Expected(a *answers.Answers, p *plan.Plan) time.Duration
	// Rehearsable reports whether Rehearse is possible: the plan changes something, and the target is not the private lab.
	Rehearsable(l Login) bool
	// Rehearse reads the site, applies the answers on a simulated copy of it (a twin), rolls back there, and returns the timeline and
	// what the twin assumes as text, up to 78 columns wide. It writes nothing to the site. A rehearsal that fails on the twin is not an error.
	Rehearse(ctx context.Context, a *answers.Answers) (string, error)
	// Apply executes the plan. Closing stop finishes running steps and starts nothing new; remote, if set, passes on the
	// operator's requests.
	Apply(ctx context.Context, a *answers.Answers, p *plan.Plan, stop <-chan struct{}, remote *engine.Remote,
		sink engine.Sink) (engine.Result, error)
	// Loads returns the cost of loading the fabric after the changes, if the answers request it.
	Loads(a *answers.Answers, inv *backends.Inventory) []perftest.LoadPlan
	// Measure runs bandwidth and latency tests between the guests, then the loads, unless stop is closed.
	Measure(ctx context.Context, a *answers.Answers, stop <-chan struct{}, progress func(perftest.Progress)) ([]perftest.Measurement, error)
	// Report checks everything once more after a completed run, builds the report of the run and saves it. found are the findings
	// of the preflight.
	Report(ctx context.Context, a *answers.Answers, res engine.Result, found []checks.Finding,
		measured []perftest.Measurement) (*report.Report, error)
	// SaveAnswers writes the answers file and returns its path.
	SaveAnswers(a *answers.Answers, how Saving) (path string, err error)
	// SaveHTML writes a report of a run, or of "look", beside the answers and returns its path; a file with other content stays.
	SaveHTML(run string, html []byte) (path string, err error)
	// Editor returns the command that opens a text in the operator's editor on the terminal, and the function that reads the text
	// afterwards and removes the file.
	Editor(text string) (*exec.Cmd, func() (string, error), error)
	// Draft returns the answers that were kept when the operator quit before anything was applied, and when that was; nil if
	// there are none.
	Draft() (*answers.Answers, time.Time)
	// KeepDraft keeps the answers for the next start; nil deletes them.
	KeepDraft(a *answers.Answers) error
	// ReplayCommand returns the command line that does the same again without a terminal.
	ReplayCommand(answersPath string) string
	// InspectCommand returns the command line that repeats the check without a terminal.
	InspectCommand() string
}

// An Ask puts a question to the operator and waits for the answer, or for ctx.
type Ask func(ctx context.Context, q Question) Answer

// A Question has one of its fields set.
type Question struct {
	Key    *HostKey // whether to trust and store this key
	Secret string   // what to type without echo: sudo password in the guests
	Yes    string   // a question without its question mark that y or n answers
}

// An Answer that is empty declines: no trust, no secret, no.
type Answer struct {
	Yes         bool
	Text        string // the secret
	Interrupted bool   // ended by Ctrl-C: the caller must stop
}

// A HostKey is the unconfirmed key of an SSH server.
type HostKey struct {
	Who         string // guest vm-01
	Address     string // with its port
	Type        string // ssh-ed25519
	Fingerprint string // SHA256:...
	KeptIn      string // file
}

// A Fingerprint is the error of an unconfirmed certificate.
type Fingerprint struct {
	Host, SHA256 string
}

func (f *Fingerprint) Error() string {
	return f.Host + " shows a certificate that is not known: SHA-256 " + f.SHA256
}

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
