package cmd

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

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
		return backends.Errorf(backends.KindPermanent, "", "choose another place with --state-dir", "the answers so far cannot be saved: %w", err)
	}
	return nil
}
