package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// foreign is the environment variable that names a directory of further transcripts to score.
const foreign = "RDMA_SETUP_TRANSCRIPTS"

// TestGolden compares what every parser reads from its fixtures, testdata/TOOL/NAME.txt, with NAME.json. A tool without a fixture
// fails.
func TestGolden(t *testing.T) {
	tools := tools()
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		files := fixtures(t, filepath.Join("testdata", tool))
		if len(files) == 0 {
			t.Errorf("%s has no fixture", tool)
		}
		for _, file := range files {
			t.Run(tool+"/"+filepath.Base(file), func(t *testing.T) {
				got := encode(t, tools[tool](read(t, file)))
				golden := strings.TrimSuffix(file, ".txt") + ".json"
				if *testclass.Update {
					testclass.Write(t, golden, string(got))
				}
				if diff := cmp.Diff(decode(t, []byte(read(t, golden))), decode(t, got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", file, diff)
				}
			})
		}
	}
}

// TestForeign compares with the foreign transcripts, if there are any: every expected key must exist and be equal, numbers within 0.5
// %, except for the text of messages.
func TestForeign(t *testing.T) {
	tools, dir := tools(), os.Getenv(foreign)
	if dir == "" {
		t.Logf("%s is not set: no foreign transcripts", foreign)
		return
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		for _, file := range fixtures(t, filepath.Join(dir, tool)) {
			t.Run(tool+"/"+filepath.Base(file), func(t *testing.T) {
				got := decode(t, encode(t, tools[tool](read(t, file))))
				want := decode(t, []byte(read(t, strings.TrimSuffix(file, ".txt")+".json")))
				for _, d := range differences(want, got, "$") {
					t.Error(d)
				}
			})
		}
	}
}

// fuzz passes the fixtures of one tool to the fuzzer. For any text, the parser must return the same
// value twice, and one that becomes JSON with the envelope of the tool.
func fuzz(f *testing.F, tool string) {
	parse, files := tools()[tool], fixtures(f, filepath.Join("testdata", tool))
	if len(files) == 0 {
		f.Fatalf("%s has no fixture", tool)
	}
	for _, file := range files {
		f.Add(read(f, file))
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := parse(text)
		first, second := encode(t, value), encode(t, parse(text))
		if !bytes.Equal(first, second) {
			t.Errorf("two readings differ:\n%s\n%s", first, second)
		}
		var v struct {
			Tool             string
			Warnings, Errors []struct{ Code string }
		}
		testclass.OK(t, json.Unmarshal(first, &v))
		result, ok := value.(interface{ Failed() bool })
		if v.Tool != tool || v.Warnings == nil || v.Errors == nil || !ok || result.Failed() != (len(v.Errors) > 0) {
			t.Errorf("envelope %+v", v)
		}
	})
}

func fixtures(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	testclass.OK(t, err)
	return files
}

func read(t testing.TB, file string) string {
	t.Helper()
	b := testclass.Read(t, file)
	return string(b)
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatalf("the value does not become JSON: %v", err)
	}
	return append(b, '\n')
}

func decode(t testing.TB, b []byte) any {
	t.Helper()
	var v any
	testclass.OK(t, json.Unmarshal(b, &v))
	return v
}

func differences(want, got any, path string) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: want an object, got %v", path, got)}
		}
		var out []string
		for _, k := range slices.Sorted(maps.Keys(w)) {
			v, there := g[k]
			switch {
			case k == "text" && isMessage(path):
			case !there:
				out = append(out, fmt.Sprintf("%s.%s: missing", path, k))
			default:
				out = append(out, differences(w[k], v, path+"."+k)...)
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{fmt.Sprintf("%s: want %d entries, got %v", path, len(w), got)}
		}
		var out []string
		for i := range w {
			out = append(out, differences(w[i], g[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return out
	case float64:
		if g, ok := got.(float64); ok && near(w, g) {
			return nil
		}
	default:
		if want == got {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: want %v, got %v", path, want, got)}
}

func isMessage(path string) bool {
	return strings.HasPrefix(path, "$.errors[") || strings.HasPrefix(path, "$.warnings[")
}

func near(a, b float64) bool {
	if a == float64(int64(a)) && b == float64(int64(b)) {
		return a == b
	}
	return max(a, b)-min(a, b) <= 0.005*max(max(a, -a), max(b, -b))+1e-9
}
