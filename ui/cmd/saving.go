package cmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// SaveAnswers implements live.Fabric.
func (f *fabric) SaveAnswers(a *answers.Answers, how live.Saving) (string, error) {
	words, err := text(a)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(f.file)
	if err != nil {
		return "", err
	}
	old, err := backends.InputAnswers.ReadFile(path)
	diff, taken := plain.LineDiff(string(old), words), string(old) != words && string(old) != f.wrote
	if err != nil {
		diff, taken = "It cannot be read: "+backends.Clean(err.Error()), !errors.Is(err, fs.ErrNotExist)
	}
	switch {
	case taken && how == live.AskFirst:
		return "", &live.Exists{Path: path, Diff: diff}
	case taken && how == live.Beside:
		if path, err = besides(path); err != nil {
			return "", err
		}
		f.file = path
	}
	if err := renameio.WriteFile(path, []byte(words), 0o600); err != nil {
		return "", backends.Permanentf("", "start rdma-setup in a directory that you may write to",
			"the answers cannot be saved: %w", err)
	}
	f.wrote = words
	return path, nil
}

// SaveHTML implements live.Fabric.
func (f *fabric) SaveHTML(run string, html []byte) (string, error) {
	path, err := filepath.Abs(filepath.Join(filepath.Dir(f.file), "rdma-setup-report-"+run+".html"))
	if err != nil {
		return "", err
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, html) {
		return path, nil
	}
	if _, err := os.Lstat(path); err == nil {
		if path, err = besides(path); err != nil {
			return "", err
		}
	}
	if err := renameio.WriteFile(path, html, 0o600); err != nil {
		return "", backends.Permanentf("", "start rdma-setup in a directory that you may write to",
			"the report cannot be written: %w", err)
	}
	return path, nil
}

// besides returns the first unused name after that of a file: answers-2.yaml after answers.yaml.
func besides(path string) (string, error) {
	ext := filepath.Ext(path)
	for n := 2; n < 1000; n++ {
		other := fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), n, ext)
		if _, err := os.Lstat(other); errors.Is(err, fs.ErrNotExist) {
			return other, nil
		}
	}
	return "", backends.Permanentf("", "remove old ones", "%s and 999 files beside it exist", path)
}

// Editor implements live.Fabric. The editor is $VISUAL, $EDITOR or vi, a command line for the shell as in git(1).
func (f *fabric) Editor(text string) (*exec.Cmd, func() (string, error), error) {
	file, err := os.CreateTemp("", "rdma-setup-*.yaml")
	if err == nil {
		_, err = file.WriteString(text)
		err = cmp.Or(err, file.Close())
	}
	if err != nil {
		return nil, nil, backends.Permanentf("", "set TMPDIR to a directory that you may write to",
			"the answers cannot be opened: %w", err)
	}
	e := f.s.Env
	editor := cmp.Or(e.Getenv("VISUAL"), e.Getenv("EDITOR"), "vi")
	c := exec.Command("sh", "-c", editor+` "$1"`, "sh", file.Name())
	c.Stdin, c.Stdout, c.Stderr = e.Stdin, e.Stdout, e.Stdout
	return c, func() (string, error) {
		defer os.Remove(file.Name())
		b, err := backends.InputAnswers.ReadFile(file.Name())
		return string(b), err
	}, nil
}

// draftPath is where the wizard saves the answers when it is quit; they contain no secrets.
func (f *fabric) draftPath() string { return filepath.Join(f.s.Set.StateDir, "draft.yaml") }

// Draft implements live.Fabric. A private lab has no drafts: its names are meaningless elsewhere. An unreadable draft is ignored.
func (f *fabric) Draft() (*answers.Answers, time.Time) {
	if f.s.Lab != nil || f.given {
		return nil, time.Time{}
	}
	st, err := os.Stat(f.draftPath())
	if err != nil {
		return nil, time.Time{}
	}
	raw, err := backends.InputState.ReadFile(f.draftPath())
	if err != nil {
		return nil, time.Time{}
	}
	a, err := answers.LoadDraft(bytes.NewReader(raw), f.draftPath())
	if err != nil {
		return nil, time.Time{}
	}
	return a, st.ModTime()
}

// KeepDraft implements live.Fabric.
func (f *fabric) KeepDraft(a *answers.Answers) error {
	if f.s.Lab != nil {
		return nil
	}
	if a == nil {
		if err := os.Remove(f.draftPath()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	words, err := text(a)
	if err == nil {
		err = os.MkdirAll(f.s.Set.StateDir, 0o700)
	}
	if err == nil {
		err = renameio.WriteFile(f.draftPath(), []byte(words), 0o600)
	}
	if err != nil {
		return backends.Permanentf("", "choose another place with --state-dir", "the answers so far cannot be saved: %w", err)
	}
	return nil
}
