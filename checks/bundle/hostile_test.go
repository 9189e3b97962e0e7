package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A file is one entry of a tar file.
type file struct {
	name string
	sort byte
	text string
}

func taken(t testing.TB, b []byte) []file {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(b))
	testclass.OK(t, err)
	var out []file
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		testclass.OK(t, err)
		text, err := io.ReadAll(r)
		testclass.OK(t, err)
		out = append(out, file{h.Name, h.Typeflag, string(text)})
	}
}

func archive(t testing.TB, files []file) []byte {
	t.Helper()
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.NoCompression) // speed matters in a fuzz test
	testclass.OK(t, err)
	w := tar.NewWriter(zip)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: f.sort, Size: int64(len(f.text)), Mode: 0o600}
		if f.sort != tar.TypeReg {
			h.Linkname, h.Size = f.text, 0
		}
		testclass.OK(t, w.WriteHeader(h))
		if f.sort == tar.TypeReg {
			if _, err := io.WriteString(w, f.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	testclass.OK(t, errors.Join(w.Close(), zip.Close()))
	return out.Bytes()
}

// bomb returns a bundle whose inventory contains only blanks, far more than allowed.
func bomb(t testing.TB, files []file) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	testclass.OK(t, w.WriteHeader(&tar.Header{Name: files[0].name, Typeflag: tar.TypeReg, Size: int64(len(files[0].text))}))
	if _, err := io.WriteString(w, files[0].text); err != nil {
		t.Fatal(err)
	}
	testclass.OK(t, w.WriteHeader(&tar.Header{Name: "inventory.json", Typeflag: tar.TypeReg, Size: 1 << 40}))
	blank := bytes.Repeat([]byte(" "), 1<<20)
	for range 8 {
		if _, err := w.Write(blank); err != nil {
			t.Fatal(err)
		}
	}
	testclass.OK(t, zip.Close())
	return out.Bytes()
}

func TestHostileBundles(t *testing.T) {
	good := packed(t, named())
	files := taken(t, good)
	with := func(change func([]file) []file) []byte { return archive(t, change(slices.Clone(files))) }
	head := func(from, to string) []byte {
		return with(func(f []file) []file {
			if !strings.Contains(f[0].text, from) {
				t.Fatalf("the manifest has no %s", from)
			}
			f[0].text = strings.Replace(f[0].text, from, to, 1)
			return f
		})
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a gzipped tar file"},
		{"a text", []byte("hosts: 4\n"), "not a gzipped tar file"},
		{"gzip of a text", gzipped(t, "hosts: 4\n"), "truncated"},
		{"gzip of a long text", gzipped(t, strings.Repeat("hosts: 4\n", 1000)), "not a gzipped tar file"},
		{"another tar file", archive(t, []file{{"README", tar.TypeReg, "hello"}}), `its first file is "README" instead of bundle.json`},
		{"path traversal", with(func(f []file) []file { return append(f, file{"../../etc/cron.d/x", tar.TypeReg, "* * * * *"}) }),
			`contains "../../etc/cron.d/x"`},
		{"an absolute path", with(func(f []file) []file { f[1].name = "/etc/passwd"; return f }), `contains "/etc/passwd"`},
		{"a symlink", with(func(f []file) []file { f[1].sort, f[1].text = tar.TypeSymlink, "/etc/passwd"; return f }), "not a regular file"},
		{"a manifest that is a link", with(func(f []file) []file { f[0].sort, f[0].text = tar.TypeSymlink, "/etc/passwd"; return f }),
			"not a regular file"},
		{"a file twice", with(func(f []file) []file { return append(f, f[1]) }), "is not part of a bundle"},
		{"a file that is missing", with(func(f []file) []file { return slices.Delete(f, 2, 3) }), "is missing"},
		{"a file that the manifest hides", head(`"inventory.json"`, `"inventory.jsom"`), "is not part of a bundle"},
		{"a changed file", with(func(f []file) []file { f[1].text = strings.Replace(f[1].text, "esx-01", "esx-02", 1); return f }),
			"was changed or damaged"},
		{"another version", head(`"schema": 2`, `"schema": 1`), "has format 1, this release reads 2"},
		{"no version", head(`"schema": 2`, `"schemata": 1`), "has format 0"},
		{"another kind", head(`rdma-setup bundle`, `other bundle`), "is not from a bundle"},
		{"a manifest that is no JSON", with(func(f []file) []file { f[0].text = "{"; return f }), "is not from a bundle"},
		{"cut in the middle", good[:len(good)/2], "truncated"},
		{"cut at the end", good[:len(good)-4], "truncated"},
		{"a flipped bit", flipped(good), "damaged"},
		{"more than it says", bomb(t, files), "too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := bundle.Read(bytes.NewReader(tt.data))
			if err == nil || b != nil {
				t.Fatal("it was read")
			}
			if !strings.Contains(err.Error(), tt.want) || backends.KindOf(err) != backends.KindUsage || backends.HintOf(err) == "" {
				t.Errorf("%v (kind %q, hint %q); want ...%s...", err, backends.KindOf(err), backends.HintOf(err), tt.want)
			}
		})
	}
}

// An endless stream is read only up to the maximum length of a bundle.
func TestEndlessInputEnds(t *testing.T) {
	_, err := bundle.Read(io.MultiReader(bytes.NewReader(gzipped(t, "")[:10]), endless{}))
	if err == nil {
		t.Fatal("it was read")
	}
	zeros := bytes.Repeat(gzipped(t, strings.Repeat("\x00", 1<<20)), 130)
	tail := append(bytes.Clone(packed(t, named())), zeros...) // gzip streams follow each other
	if _, err := bundle.Read(bytes.NewReader(tail)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%v", err)
	}
}

// summed updates the manifest's checksums for the files.
func summed(t testing.TB, files []file) []byte {
	t.Helper()
	var head map[string]any
	testclass.OK(t, json.Unmarshal([]byte(files[0].text), &head))
	sums := map[string]string{}
	for _, f := range files[1:] {
		s := sha256.Sum256([]byte(f.text))
		sums[f.name] = hex.EncodeToString(s[:])
	}
	head["files"] = sums
	text, err := json.Marshal(head)
	testclass.OK(t, err)
	files[0].text = string(text)
	return archive(t, files)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func gzipped(t testing.TB, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	testclass.OK(t, w.Close())
	return b.Bytes()
}

func flipped(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-6] ^= 1 // in the checksum of the complete stream
	return b
}

// FuzzRead checks that no input makes the reader or the checks after it panic.
func FuzzRead(f *testing.F) {
	good := packed(f, named())
	for _, seed := range taken(f, good) {
		f.Add(seed.text, seed.text)
	}
	f.Add(`{"vcenter":{},"hosts":null,"vms":[{}],"switches":[{"members":{"a":{}}}]}`, `{"Lacks":[{}]}`)
	files := taken(f, good)
	f.Fuzz(func(t *testing.T, inventory, rest string) {
		changed := slices.Clone(files)
		for i := range changed {
			switch changed[i].name {
			case "inventory.json":
				changed[i].text = inventory
			case "facts.json", "pairs.json":
				changed[i].text = rest
			}
		}
		b, err := bundle.Read(bytes.NewReader(summed(t, changed)))
		if err != nil {
			return
		}
		b.Facts.Answers = b.Answers
		for _, found := range catalogue.Run(context.Background(), b.Facts, checks.Selection{Uses: []answers.Mode{answers.PVRDMA}}) {
			if strings.Contains(found.Evidence, "the check itself failed") {
				t.Errorf("%s: %s", found.ID, found.Evidence)
			}
		}
	})
}

// FuzzReadRaw checks that arbitrary bytes after a valid beginning cause an error and nothing else.
func FuzzReadRaw(f *testing.F) {
	good := packed(f, named())
	f.Add(0, good)
	f.Add(12, []byte("hosts: 4"))
	f.Add(len(good)/2, good[len(good)/2:])
	f.Fuzz(func(t *testing.T, keep int, tail []byte) {
		keep = min(max(keep, 0), len(good))
		b, err := bundle.Read(bytes.NewReader(append(good[:keep:keep], tail...)))
		if (b == nil) == (err == nil) {
			t.Errorf("%v, %v", b, err)
		}
	})
}
