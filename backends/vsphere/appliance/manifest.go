package appliance

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmware/govmomi/vapi/library"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Proof says what proves that a package is complete and who created it.
type Proof struct {
	Manifest bool // every file, including the descriptor, has the digest in the manifest
	Signed   bool // the package contains a certificate and a signature of the manifest; the signature is not verified here
}

const downloadAgain = "Download the appliance again."

// Verify compares the descriptor and every referenced file with the manifest. A truncated or modified package is detected before
// anything is uploaded.
func (f *File) Verify() (Proof, error) {
	base := strings.TrimSuffix(f.files.Descriptor(), filepath.Ext(f.files.Descriptor()))
	text, err := readLimited(f.files, base+".mf", manifestLimit)
	if errors.Is(err, os.ErrNotExist) {
		return Proof{}, f.complete()
	}
	if err != nil {
		return Proof{}, f.unusable(err, "read the manifest")
	}
	sums, err := library.ReadManifest(bytes.NewReader(text))
	if err != nil {
		return Proof{}, f.unusable(err, "read the manifest")
	}
	for _, name := range append([]string{f.files.Descriptor()}, f.references...) {
		sum := sums[name]
		if sum == nil {
			return Proof{}, backends.Errorf(backends.KindRefused, "", downloadAgain, "the manifest of %s does not list %s", f.Path, name)
		}
		if err := f.compare(name, sum); err != nil {
			return Proof{}, err
		}
	}
	p := Proof{Manifest: true}
	if r, _, err := f.files.Open(base + ".cert"); err == nil {
		p.Signed = true
		_ = r.Close() // only its existence matters
	}
	return p, nil
}

func (f *File) unusable(err error, what string) error {
	return backends.Errorf(backends.KindUsage, "", downloadAgain, "%s of %s: %w", what, f.Path, err)
}

// complete checks that every file exists.
func (f *File) complete() error {
	for _, name := range f.references {
		r, _, err := f.files.Open(name)
		if err != nil {
			return f.unusable(err, "open "+name)
		}
		_ = r.Close() // only its existence matters
	}
	return nil
}

func (f *File) compare(name string, sum *library.Checksum) error {
	var h hash.Hash
	switch strings.ToUpper(sum.Algorithm) {
	case "SHA1":
		h = sha1.New()
	case "SHA256":
		h = sha256.New()
	case "SHA512":
		h = sha512.New()
	default:
		return backends.Errorf(backends.KindUsage, "", "Ask the vendor for a manifest with SHA-256.", "the manifest of %s uses %q, which is not supported", f.Path, sum.Algorithm)
	}
	r, _, err := f.files.Open(name)
	if err != nil {
		return f.unusable(err, "open "+name)
	}
	defer r.Close()
	if _, err := io.Copy(h, r); err != nil {
		return fmt.Errorf("read %s of %s: %w", name, f.Path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, sum.Checksum) {
		return backends.Errorf(backends.KindRefused, "", downloadAgain, "%s of %s is damaged: its %s is %s, the manifest says %s", name, f.Path, sum.Algorithm, got, sum.Checksum)
	}
	return nil
}
