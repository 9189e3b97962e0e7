package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A member is one file of a bundle.
type member struct {
	name string
	text []byte
}

// Write writes a bundle without the user names in it. The output is deterministic, unless names are replaced.
func Write(w io.Writer, b *Bundle) error {
	if b.Facts == nil || b.Facts.Inventory == nil {
		return fmt.Errorf("there is nothing to bundle: no inventory was read")
	}
	rest, inv, guests := split(b.Facts)
	var members []member
	for _, m := range []struct {
		name string
		v    any
	}{{inventoryFile, inv}, {guestsFile, guests}, {pairsFile, b.Facts.Pairs}, {factsFile, rest}} {
		text, err := document(m.v)
		if err != nil {
			return fmt.Errorf("bundle %s: %w", m.name, err)
		}
		members = append(members, member{m.name, text})
	}
	head := manifest{
		Schema: Schema, Kind: kind, Tool: b.Tool, Made: b.Made.UTC(), VCenter: inv.VCenter.URL, Simulated: inv.VCenter.Simulated, Quick: b.Quick,
		Kept:  b.Kept,
		Hosts: len(inv.Hosts), VMs: len(inv.VMs), Guests: len(guests), LeftOut: leftOut, Files: map[string]string{},
	}
	members, a, err := redact(members, b.Answers)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if a != nil {
		var text bytes.Buffer
		if err := answers.Save(&text, a); err != nil {
			return err
		}
		head.Mode = string(a.Mode)
		members = append(members, member{answersFile, text.Bytes()})
	}
	if b.Masked {
		m, others, err := masked(members)
		if err != nil {
			return fmt.Errorf("bundle: %w", err)
		}
		members, head.VCenter, head.LeftOut = others, m.value("", "url", head.VCenter), leftOut+replace
	}
	for _, m := range members {
		head.Files[m.name] = sum(m.text)
	}
	text, err := document(head)
	if err != nil {
		return fmt.Errorf("bundle %s: %w", manifestFile, err)
	}
	return pack(w, append([]member{{manifestFile, text}}, members...), b.Made)
}

func pack(w io.Writer, members []member, made time.Time) error {
	zip := gzip.NewWriter(w)
	t := tar.NewWriter(zip)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(m.text)), ModTime: made.UTC().Truncate(time.Second),
			Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(m.text); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return zip.Close()
}

func document(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// facts is the stored form of checks.Facts: without the parts that have files of their own, and with errors as texts.
type facts struct {
	checks.Facts

	Answers   any `json:"Answers,omitempty"`
	Inventory any `json:"Inventory,omitempty"`
	Pairs     any `json:"Pairs,omitempty"`
	LacksErr  said
}

// said returns the text of an error, "" if there is none.
type said string

func textOf(err error) said {
	if err == nil {
		return ""
	}
	return said(err.Error())
}

func (s said) err() error {
	if s == "" {
		return nil
	}
	return errors.New(string(s))
}

// split divides facts into the contents of the files.
func split(f *checks.Facts) (facts, backends.Inventory, []backends.Guest) {
	inv := *f.Inventory
	guests := inv.Guests
	inv.Guests = nil
	w := facts{Facts: *f, LacksErr: textOf(f.LacksErr)}
	w.Facts.LacksErr = nil
	return w, inv, guests
}
