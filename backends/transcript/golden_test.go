package transcript_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

var update = flag.Bool("update", false, "write the expected values of testdata anew")

// fixture is the text of a tool with the value that it stands for.
type fixture struct {
	tool, name string
	text       string
	want       string // path of the expected JSON
}

// fixtures reads DIR/TOOL/NAME.txt of the tools that this program knows.
func fixtures(tb testing.TB, dir string) []fixture {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.txt"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no fixtures in %s (%v)", dir, err)
	}
	var out []fixture
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		tool := filepath.Base(filepath.Dir(p))
		if _, known := transcript.Lookup(tool); !known {
			tb.Errorf("%s: no such tool", tool)
			continue
		}
		out = append(out, fixture{tool, tool + "/" + strings.TrimSuffix(filepath.Base(p), ".txt"), string(text), strings.TrimSuffix(p, ".txt") + ".json"})
	}
	return out
}

func parse(tb testing.TB, tool, text string) []byte {
	tb.Helper()
	r, err := transcript.Parse(tool, strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	got, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	return append(got, '\n')
}

func TestGolden(t *testing.T) {
	for _, f := range fixtures(t, "testdata") {
		t.Run(f.name, func(t *testing.T) {
			got := parse(t, f.tool, f.text)
			if *update {
				if err := os.WriteFile(f.want, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(f.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestContract scores the directory that RDMA_SETUP_TRANSCRIPTS names, where there is one, and the own fixtures: every
// key of the expectation must be there and equal, and the result fails exactly when errors are expected.
func TestContract(t *testing.T) {
	dirs := []string{"testdata"}
	if dir := os.Getenv("RDMA_SETUP_TRANSCRIPTS"); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		for _, f := range fixtures(t, dir) {
			t.Run(f.name, func(t *testing.T) {
				want, err := os.ReadFile(f.want)
				if err != nil {
					t.Fatal(err)
				}
				expect(t, "$", decode(t, want), decode(t, parse(t, f.tool, f.text)))
			})
		}
	}
}

func decode(t *testing.T, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// expect compares as the contract says: more keys are fine, texts of messages are free, fractions are within 0.5 %.
func expect(t *testing.T, path string, want, got any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: want an object, got %v", path, got)
			return
		}
		_, message := w["code"]
		for k, v := range w {
			if _, there := g[k]; !there {
				t.Errorf("%s.%s: missing", path, k)
			} else if k != "text" || !message {
				expect(t, path+"."+k, v, g[k])
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			t.Errorf("%s: want %d entries, got %v", path, len(w), got)
			return
		}
		for i := range w {
			expect(t, path+"[]", w[i], g[i])
		}
	case json.Number:
		g, ok := got.(json.Number)
		a, err1 := w.Float64()
		b, err2 := g.Float64()
		if !ok || err1 != nil || err2 != nil || a-b > 0.005*max(a, b, -a) || b-a > 0.005*max(a, b, -a) {
			t.Errorf("%s: want %v, got %v", path, want, got)
		}
	default:
		if want != got {
			t.Errorf("%s: want %v, got %v", path, want, got)
		}
	}
}
