package journal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/rdma-setup/rdma-setup/backends"
)

// NewRun returns a new run id, sortable by its time: 20261120-184410-pvrdma-x7k2.
func NewRun(now time.Time, mode string) string {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(mode))
	return now.UTC().Format(stamp) + "-" + word + "-" + strings.ToLower(rand.Text()[:4])
}

// NextRun returns a run id that sorts after all existing ones in root, even if the clock was set back or the last run was created
// in the same second: the run that sorts last must be the last run. Invalid directories (see InvalidEntries) do not count.
func NextRun(root string, now time.Time, mode string) string {
	entries, err := os.ReadDir(filepath.Join(root, "runs"))
	if err != nil {
		return NewRun(now, mode) // Create reports what is wrong
	}
	for _, e := range entries {
		if made, is := madeOf(e.Name()); is && !now.Truncate(time.Second).After(made) {
			now = made.Add(time.Second)
		}
	}
	return NewRun(now, mode)
}

const stamp = "20060102-150405"

// farFuture is the first year in which the date of a run is implausible: no clock is that wrong, and the ids after such a run
// would soon run out of dates.
const farFuture = 2200

// madeOf returns the time in a run id; false if it is invalid, or has no or an impossible date.
func madeOf(run string) (time.Time, bool) {
	if checkRun(run) != nil {
		return time.Time{}, false
	}
	made, err := time.Parse(stamp, run[:len(stamp)])
	return made, err == nil && made.Year() < farFuture
}

// InvalidEntries returns the entries among the runs of a state directory that are not runs: a foreign name, or an impossible date.
func InvalidEntries(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, "runs"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, stateError(root, err)
	}
	var out []string
	for _, e := range entries {
		if _, is := madeOf(e.Name()); !is || !e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// runID matches the output of NewRun; other text is never used in a path.
var runID = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[a-z0-9]*-[a-z0-9]{4}$`)

func checkRun(run string) error {
	if !runID.MatchString(run) {
		return backends.Usagef("", "list the runs with: rdma-setup runs", "%q is not the id of a run", run)
	}
	return nil
}

// Dir returns the directory of a run below the state directory root.
func Dir(root, run string) string { return filepath.Join(root, "runs", run) }

// An Option changes how a journal is written, in tests and on twins.
type Option func(*Journal)

// WithFile inserts a wrapper between the journal and its file.
func WithFile(wrap func(File) File) Option {
	return func(j *Journal) { j.file = wrap(j.file) }
}

// WithClock sets the clock for the times of records.
func WithClock(now func() time.Time) Option {
	return func(j *Journal) { j.clock = now }
}

// Create creates the directory of a run, saves the plan and writes the header. If it fails nothing else has been changed: the
// state directory is read-only, its disk is full, or it belongs to another user. Version, AnswersHash and an empty Run are set.
func Create(root string, h Header, plan []byte, opts ...Option) (*Journal, error) {
	h.Version = Version
	if h.Made.IsZero() {
		h.Made = time.Now().UTC()
	}
	if h.Run == "" {
		h.Run = NewRun(h.Made, h.Mode)
	}
	if err := checkRun(h.Run); err != nil {
		return nil, err
	}
	h.AnswersHash = hash(h.Answers)
	if err := privateDir(root, "runs"); err != nil {
		return nil, err
	}
	dir := Dir(root, h.Run)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, stateError(root, err)
	}
	if err := WriteFile(root, h.Run, "plan.json", plan); err != nil {
		return nil, err
	}
	f, err := openFile(root, h.Run, "journal.jsonl", os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	j, err := newJournal(root, h.Run, f, State{}, opts)
	if err != nil {
		return nil, err
	}
	err = j.Append(Record{Type: TypeHeader, Header: &h})
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err == nil {
			err = syncDir(d)
		}
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// Open opens the journal of a run to continue it. An incomplete last record is removed.
func Open(root, run string, opts ...Option) (*Journal, error) {
	s, err := Read(root, run)
	if err != nil {
		return nil, err
	}
	f, err := openFile(root, run, "journal.jsonl", os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(s.size); err != nil {
		return nil, errors.Join(stateError(root, err), f.Close())
	}
	return newJournal(root, run, f, *s, opts)
}

// Reopen is like Open for a run whose journal has been read before: it is read again only if it has changed.
func Reopen(root string, st *State, opts ...Option) (*Journal, error) {
	run := st.Header.Run
	f, err := openFile(root, run, "journal.jsonl", os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.Size() != st.size {
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, stateError(root, err)
		}
		return Open(root, run, opts...)
	}
	same := *st
	same.Records = slices.Clip(same.Records)
	return newJournal(root, run, f, same, opts)
}

func newJournal(root, run string, f *os.File, s State, opts []Option) (*Journal, error) {
	own, err := f.Stat()
	if err != nil {
		return nil, errors.Join(stateError(root, err), f.Close())
	}
	j := &Journal{root: root, run: run, file: f, clock: time.Now, own: own, state: s}
	for _, o := range opts {
		o(j)
	}
	j.start()
	return j, nil
}

// WriteFile writes a file of a run (report.json, plan.json) atomically, with mode 0600, and follows no link.
func WriteFile(root, run, name string, data []byte) error {
	if err := checkRun(run); err != nil {
		return err
	}
	dir, err := os.OpenRoot(Dir(root, run))
	if err != nil {
		return stateError(root, err)
	}
	defer func() { _ = dir.Close() }()
	err = renameio.WriteFile(name, data, 0o600, renameio.WithRoot(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return stateError(root, err)
	}
	return nil
}

// BackupDir is the directory inside a run's directory for the backups that the run saved before its first change.
const BackupDir = "backup"

// WriteBackup writes a file to BackupDir, with mode 0600 in a directory with mode 0700. Unsafe characters in the name are
// replaced.
func WriteBackup(root, run, name string, data []byte) (file string, err error) {
	if err := checkRun(run); err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(Dir(root, run), BackupDir), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", stateError(root, err)
	}
	file = backupName(name)
	return file, WriteFile(root, run, filepath.Join(BackupDir, file), data)
}

// Backup returns the backup that a run has saved under this name, and the file; nothing if there is no readable one.
func Backup(root, run, name string) (file string, saved []byte) {
	file = backupName(name)
	b, err := ReadFile(root, run, filepath.Join(BackupDir, file))
	if err != nil {
		return file, nil
	}
	return file, b
}

// backupName returns the file name for any name; if characters are replaced it ends in a hash of the whole name, so that two
// names never share a file.
func backupName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, name)
	if plain == name {
		return name
	}
	ext := filepath.Ext(plain)
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s-%x%s", strings.TrimSuffix(plain, ext), sum[:4], ext)
}

// ReadFile reads a file of a run (report.json, plan.json). If the run does not have it, the error is os.ErrNotExist; if there is no
// such run, it is of kind usage.
func ReadFile(root, run, name string) ([]byte, error) {
	if err := checkRun(run); err != nil {
		return nil, err
	}
	dir, err := openRun(root, run)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return dir.ReadFile(name)
}

// OpenLog opens the log of a run, log.jsonl, for appending.
func OpenLog(root, run string) (*os.File, error) {
	return openFile(root, run, "log.jsonl", os.O_WRONLY|os.O_CREATE|os.O_APPEND)
}

// ReadLog opens the log of a run for reading: its events and, for a run at level debug, every call, one JSON document per line.
// If the run has no log yet, the error is os.ErrNotExist; if there is no such run, it is of kind usage.
func ReadLog(root, run string) (*os.File, error) {
	return openFile(root, run, "log.jsonl", os.O_RDONLY)
}

// privateDir creates root and a directory in it with mode 0700, and refuses directories that others can write to.
func privateDir(root, sub string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return stateError(root, err)
	}
	dir := filepath.Join(root, sub)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return stateError(root, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return stateError(root, err)
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return stateError(root, fmt.Errorf("%s is a link or a file, not a directory", dir))
	case known && int(owner.Uid) != os.Geteuid():
		return stateError(root, fmt.Errorf("%s belongs to somebody else (uid %d)", dir, owner.Uid))
	case info.Mode().Perm()&0o077 != 0:
		if err := os.Chmod(dir, 0o700); err != nil {
			return stateError(root, err)
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func stateError(root string, err error) error {
	return backends.Permanentf("", "Set another directory with --state-dir.",
		"the state directory %s cannot be used: %w", root, err)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
