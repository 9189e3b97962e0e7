package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Read reads the output of Write. The input is untrusted: if it is too large, truncated, modified, of another version or not a
// bundle, the error is of kind usage and says so. Nothing is unpacked to disk.
func Read(r io.Reader) (*Bundle, error) {
	in := bufio.NewReader(&capped{r: r, left: packedLimit})
	zip, err := gzip.NewReader(in)
	if err != nil {
		return nil, foreign("it is not a gzipped tar file")
	}
	body := &capped{r: zip, left: totalLimit}
	t := tar.NewReader(body)
	head, err := readManifest(t)
	if err != nil {
		return nil, err
	}
	files, err := readFiles(t, head)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, body); err != nil { // the checksum is at the end
		return nil, refuse(err, "it is damaged")
	}
	return open(head, files)
}

func readManifest(t *tar.Reader) (*manifest, error) {
	h, err := t.Next()
	if err != nil {
		return nil, refuse(err, "it is not a gzipped tar file")
	}
	if h.Name != manifestFile {
		return nil, foreign("its first file is %[2]q instead of %[1]s", manifestFile, clip(h.Name))
	}
	text, err := readMember(t, h, manifestLimit)
	if err != nil {
		return nil, err
	}
	var head manifest
	if err := json.Unmarshal(text, &head); err != nil || head.Kind != kind {
		return nil, refuse(err, "%s is not from a bundle", manifestFile)
	}
	if head.Schema != Schema {
		return nil, backends.Usagef("", "check it with the release of rdma-setup that wrote it: "+clip(head.Tool),
			"the bundle has format %d, this release reads %d", head.Schema, Schema)
	}
	return &head, nil
}

// readFiles reads the files after the manifest: exactly those it names, each once and unchanged.
func readFiles(t *tar.Reader, head *manifest) (map[string][]byte, error) {
	files := map[string][]byte{}
	left := int64(totalLimit)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, refuse(err, "it is damaged")
		}
		want, named := head.Files[h.Name]
		switch h.Name {
		case answersFile, inventoryFile, guestsFile, pairsFile, factsFile:
		default:
			named = false
		}
		if _, again := files[h.Name]; !named || again {
			return nil, refuse(nil, "it contains %q, which is not part of a bundle", clip(h.Name))
		}
		text, err := readMember(t, h, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(text))
		if sum(text) != want {
			return nil, refuse(nil, "%s was changed or damaged: its checksum does not match", h.Name)
		}
		files[h.Name] = text
	}
	for name := range head.Files {
		if files[name] == nil {
			return nil, refuse(nil, "%s is missing", clip(name))
		}
	}
	return files, nil
}

// readMember reads a file up to a size limit. The header of a sparse file states its length, whatever the size of the archive.
func readMember(t *tar.Reader, h *tar.Header, most int64) ([]byte, error) {
	switch {
	case h.Typeflag != tar.TypeReg:
		return nil, refuse(nil, "%q is not a regular file", clip(h.Name))
	case h.Size > most:
		return nil, refuse(errTooLarge, "%s has %d MiB", clip(h.Name), h.Size>>20)
	}
	b := make([]byte, h.Size)
	if _, err := io.ReadFull(t, b); err != nil {
		return nil, refuse(err, "it is damaged")
	}
	return b, nil
}

// open decodes the files.
func open(head *manifest, files map[string][]byte) (*Bundle, error) {
	var (
		inv   backends.Inventory
		rest  facts
		pairs []checks.PairFacts
	)
	for _, d := range []struct {
		name string
		into any
	}{{inventoryFile, &inv}, {guestsFile, &inv.Guests}, {pairsFile, &pairs}, {factsFile, &rest}} {
		text, ok := files[d.name]
		if !ok {
			return nil, refuse(nil, "%s is missing", d.name)
		}
		if err := backends.InventoryJSON.Check(text); err != nil {
			return nil, refuse(errTooLarge, "%s", d.name)
		}
		files[d.name] = nil
		if err := json.Unmarshal(text, d.into); err != nil {
			return nil, refuse(err, "%s cannot be read", d.name)
		}
	}
	f := rest.Facts
	inv.VCenter.ClockAsked = f.Now // not stored with the inventory
	f.Answers, f.Inventory, f.Pairs, f.LacksErr = nil, &inv, pairs, rest.LacksErr.err()
	b := &Bundle{Tool: head.Tool, Made: head.Made, Quick: head.Quick, Kept: head.Kept, Facts: &f}
	if text, ok := files[answersFile]; ok {
		a, err := answers.Load(bytes.NewReader(text), answersFile)
		if err != nil {
			return nil, err
		}
		b.Answers = a
	}
	return b, nil
}

var errTooLarge = backends.ErrTooLarge

// capped is a reader that returns errTooLarge at its limit.
type capped struct {
	r    io.Reader
	left int64
}

func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		var one [1]byte
		if n, err := c.r.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, errTooLarge
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	return n, err
}

// refuse returns the error for a file that is not a usable bundle. The cause err is described before what.
func refuse(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	switch {
	case errors.Is(err, errTooLarge):
		what = fmt.Sprintf("it is too large: the limits are %d MiB (%d MiB packed) and %d rows per list", totalLimit>>20, packedLimit>>20,
			backends.InventoryJSON.Rows)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		what = "it is truncated"
	case err != nil:
		what += ": " + err.Error()
	}
	return backends.Usagef("", "write it again with: rdma-setup collect --out bundle.tgz",
		"the bundle cannot be read: %s", what)
}

// foreign returns the error for a file that collect has not written.
func foreign(format string, args ...any) error {
	return backends.Usagef("", "name a file that rdma-setup collect --out FILE has written",
		"the bundle cannot be read: "+format, args...)
}

// clip shortens a name from an untrusted file.
func clip(s string) string { return backends.Shorten(s, 80) }
