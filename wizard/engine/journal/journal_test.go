package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func header() journal.Header {
	return journal.Header{VCenter: "50a1", URL: "https://vc.example/sdk", Mode: "pvrdma", Answers: "mode: pvrdma\n", Made: noon}
}

func create(t *testing.T, root string, opts ...journal.Option) *journal.Journal {
	t.Helper()
	j, err := journal.Create(root, header(), []byte(`{"mode":"pvrdma"}`), opts...)
	testclass.OK(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func intent(node string, prior, to any) journal.Record {
	p := backends.Absent
	if prior != nil {
		p = backends.ValueOf(prior)
	}
	return journal.Record{
		Type: journal.TypeIntent, Phase: journal.PhaseApply, Node: node, Target: backends.HostRef("esx-01"),
		Kind: "option", Name: node, Prior: p, To: backends.ValueOf(to),
	}
}

func outcome(node string, found any) journal.Record {
	v := backends.ValueOf(found)
	return journal.Record{Type: journal.TypeOutcome, Node: node, Target: backends.HostRef("esx-01"), Kind: "option", Name: node,
		Found: []backends.Value{v}, OK: true}
}

func file(root string, j *journal.Journal) string {
	return filepath.Join(journal.Dir(root, j.Run()), "journal.jsonl")
}

func TestRecordsComeBackAsTheyWereWritten(t *testing.T) {
	root := t.TempDir()
	j := create(t, root, journal.WithClock(func() time.Time { return noon }))
	absent, text := backends.Absent, backends.ValueOf("<a> & \"b\"\n\x1b[31m")
	half, tag := backends.Partial("vmk1"), backends.ValueOf(map[string]string{"$value": "unknown", "until": "x"})
	want := []journal.Record{
		{Type: journal.TypeBegin, Phase: journal.PhaseApply, PID: 7},
		{Type: journal.TypeStage, Stage: 1, Plan: []byte(`{"mode":"pvrdma"}`)},
		{Type: journal.TypeIntent, Node: "n", Target: backends.VMRef("a/b c"), Kind: "option", Name: "x", Prior: text, To: absent,
			Kept: &backends.Kept{Items: []backends.Item{{Kind: backends.ItemFile, Name: "/etc/x", State: text, Content: []byte{0, 255}},
				{Kind: backends.ItemUnit, Name: "y"}}}},
		{Type: journal.TypeOutcome, Node: "n", Found: []backends.Value{absent}, Left: &backends.Kept{Items: []backends.Item{}}, OK: true},
		{Type: journal.TypeOutcome, Node: "n", Err: "no", Hint: "do"},
		{Type: journal.TypeIntent, Node: "n", Prior: backends.ValueOf("unknown until x"), To: backends.Unknown("x"),
			Kept: &backends.Kept{Items: []backends.Item{{State: tag}, {State: half}}}},
		{Type: journal.TypeOutcome, Node: "n", Found: []backends.Value{half}},
		{Type: journal.TypeResult, Status: "partial", Counts: map[string]int{"done": 1}},
	}
	testclass.OK(t, j.Append(want...))
	for i := range want {
		want[i].Seq, want[i].Time = int64(i+2), noon
	}
	st, err := journal.Read(root, j.Run())
	testclass.OK(t, err)
	eq := cmp.Comparer(func(a, b backends.Value) bool { return a == b })
	if diff := cmp.Diff(want, st.Records[1:], eq); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(st.Records, j.State().Records, eq); diff != "" {
		t.Errorf("the open journal says otherwise: %s", diff)
	}
	if h := st.Header; h.Version != journal.Version || h.Run != j.Run() || len(h.AnswersHash) != 64 {
		t.Errorf("header: %+v", h)
	}
}

func TestPrivateAndNotFollowingLinks(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	j := create(t, root)
	testclass.OK(t, journal.WriteFile(root, j.Run(), "report.json", []byte("{}")))
	log, err := journal.OpenLog(root, j.Run())
	testclass.OK(t, err)
	testclass.OK(t, log.Close())
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err == nil && info.Mode().Perm() != want {
			t.Errorf("%s is %o", path, info.Mode().Perm())
		}
		return err
	})
	testclass.OK(t, err)

	victim := filepath.Join(t.TempDir(), "victim")
	testclass.OK(t, os.WriteFile(victim, []byte("mine"), 0o600))
	dir := journal.Dir(root, j.Run())
	for _, name := range []string{"report.json", "log.jsonl", "journal.jsonl"} {
		testclass.OK(t, os.Remove(filepath.Join(dir, name)))
		testclass.OK(t, os.Symlink(victim, filepath.Join(dir, name)))
	}
	if err := journal.WriteFile(root, j.Run(), "report.json", []byte("{}")); err != nil {
		t.Errorf("a link should be replaced: %v", err)
	}
	if _, err := journal.OpenLog(root, j.Run()); err == nil {
		t.Error("the log followed a link")
	}
	if _, err := journal.Open(root, j.Run()); err == nil {
		t.Error("the journal followed a link")
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "mine" {
		t.Errorf("victim: %q, %v", b, err)
	}

	linked := t.TempDir()
	testclass.OK(t, os.Symlink(t.TempDir(), filepath.Join(linked, "runs")))
	if _, err := journal.Create(linked, header(), nil); err == nil {
		t.Error("the directory of runs is a link and was taken")
	}
	for _, run := range []string{"../x", "", "20261120-184410-pvrdma-x7k2/..", "/etc"} {
		if _, err := journal.Read(root, run); backends.KindOf(err) != backends.KindUsage {
			t.Errorf("run %q: %v", run, err)
		}
	}
}

func TestStateDirectoryThatCannotBeWritten(t *testing.T) {
	root := filepath.Join(t.TempDir(), "file")
	testclass.OK(t, os.WriteFile(root, nil, 0o600))
	_, err := journal.Create(root, header(), nil)
	if err == nil || !strings.Contains(backends.HintOf(err), "--state-dir") || !strings.Contains(err.Error(), root) {
		t.Errorf("%v (hint %q)", err, backends.HintOf(err))
	}
}

// slow counts syncs and blocks them until gate is closed.
type slow struct {
	journal.File
	syncs atomic.Int64
	gate  chan struct{}
}

func (s *slow) Sync() error {
	if s.syncs.Add(1) > 1 { // the first is that of the header
		<-s.gate
	}
	return nil
}

func TestAppendsShareAnFsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slow{gate: make(chan struct{})}
		j := create(t, t.TempDir(), journal.WithFile(func(f journal.File) journal.File {
			disk.File = f
			return disk
		}))
		const writers = 100
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				if err := j.Append(intent(fmt.Sprint(i), nil, i)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // one is writing, the others wait
		close(disk.gate)
		wg.Wait()
		if n := disk.syncs.Load(); n < 2 || n > 3 { // none returns before its record is on the disk
			t.Errorf("%d syncs for a header and %d appends", n, writers)
		}
		if n := len(j.State().OpenIntents()); n != writers {
			t.Errorf("%d intents", n)
		}
		_ = j.Close() // inside the bubble
	})
}

func TestCutAnywhereOnlyTheLastRecordIsLost(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	for i := range 3 {
		testclass.OK(t, j.Append(intent(fmt.Sprint(i), nil, i)))
	}
	content := testclass.Read(t, file(root, j))
	for cut := range content {
		lines := bytes.Count(content[:cut], []byte("\n"))
		for _, junk := range []string{"", "\x00\x00\x00"} {
			st, err := journal.Parse(strings.NewReader(string(content[:cut]) + junk))
			if lines == 0 {
				if !errors.Is(err, journal.ErrNotBegun) {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			torn := junk != "" || content[cut-1] != '\n'
			if len(st.Records) != lines || (len(st.Notes) == 1) != torn {
				t.Fatalf("cut at %d: %d records, notes %v", cut, len(st.Records), st.Notes)
			}
		}
	}
}

func TestTornRecordIsCutOffBeforeMoreIsWritten(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	testclass.OK(t, errors.Join(j.Append(intent("a", nil, 1)), j.Append(intent("b", nil, 1)), j.Close()))
	content := testclass.Read(t, file(root, j))
	testclass.OK(t, os.WriteFile(file(root, j), content[:len(content)-9], 0o600))
	again, err := journal.Open(root, j.Run())
	testclass.OK(t, err)
	testclass.OK(t, errors.Join(again.Append(intent("c", nil, 1)), again.Close()))
	st, err := journal.Read(root, j.Run())
	testclass.OK(t, err)
	var nodes []string
	for _, r := range st.OpenIntents() {
		nodes = append(nodes, r.Node)
	}
	if diff := cmp.Diff([]string{"a", "c"}, nodes); diff != "" {
		t.Error(diff)
	}
}

// A journal is continued after the last record in the file, whether the caller has read that record or not.
func TestJournalIsContinuedAsItIsNow(t *testing.T) {
	for name, meanwhile := range map[string]func(*testing.T, string, string) []string{
		"unchanged": func(*testing.T, string, string) []string { return nil },
		"continued by another process": func(t *testing.T, root, run string) []string {
			j, err := journal.Open(root, run)
			testclass.OK(t, err)
			testclass.OK(t, errors.Join(j.Append(intent("b", nil, 1)), j.Close()))
			return []string{"b"}
		},
		"torn": func(t *testing.T, root, run string) []string {
			f, err := os.OpenFile(filepath.Join(journal.Dir(root, run), "journal.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
			testclass.OK(t, err)
			if _, err := f.WriteString(`{"prev":`); err != nil {
				t.Fatal(err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			j := create(t, root)
			testclass.OK(t, errors.Join(j.Append(intent("a", nil, 1)), j.Close()))
			st, err := journal.Read(root, j.Run())
			testclass.OK(t, err)
			known := len(st.Records)
			want := append([]string{"a"}, meanwhile(t, root, j.Run())...)
			again, err := journal.Reopen(root, st)
			testclass.OK(t, err)
			testclass.OK(t, errors.Join(again.Append(intent("c", nil, 1)), again.Close()))
			now, err := journal.Read(root, j.Run())
			testclass.OK(t, err)
			var nodes []string
			for _, r := range now.OpenIntents() {
				nodes = append(nodes, r.Node)
			}
			if diff := cmp.Diff(append(want, "c"), nodes); diff != "" {
				t.Error(diff)
			}
			if len(st.Records) != known {
				t.Errorf("the caller's state has %d records, had %d", len(st.Records), known)
			}
		})
	}
}

func TestDamageInTheMiddleIsRefused(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	testclass.OK(t, errors.Join(j.Append(intent("a", "vmk1", "vmk0")), j.Append(intent("b", nil, 1))))
	content := testclass.Read(t, file(root, j))
	lines := bytes.SplitAfter(content, []byte("\n"))
	for name, text := range map[string]string{
		"one letter":     strings.Replace(string(content), "vmk1", "vmk2", 1),
		"a line missing": string(lines[0]) + string(lines[2]),
		"a line twice":   string(lines[0]) + string(lines[1]) + string(lines[1]) + string(lines[2]),
		"no header":      string(lines[1]) + string(lines[2]),
		"empty line":     string(lines[0]) + "\n" + string(lines[1]),
	} {
		st, err := journal.Parse(strings.NewReader(text))
		if backends.KindOf(err) != backends.KindRefused || backends.HintOf(err) == "" {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
}

// lineOf returns a record as the first line of a run's journal.
func lineOf(run, rec string) string {
	return chained(run, "", rec) + "\n"
}

// chained returns a line in the documented format.
func chained(run, prev, rec string) string {
	sum := sha256.Sum256([]byte(run + "\n" + prev + "\n" + rec))
	return fmt.Sprintf("{\"prev\":%q,\"sum\":%q,\"rec\":%s}", prev, hex.EncodeToString(sum[:16]), rec)
}

func TestAnotherVersionIsRefusedWithAMessage(t *testing.T) {
	const run = "20261120-120000-pvrdma-aaaa"
	for _, version := range []int{1, 3} {
		rec := fmt.Sprintf(`{"seq":1,"time":"2026-11-20T12:00:00Z","type":"header","header":{"version":%d,"run":%q}}`, version, run)
		for _, text := range []string{lineOf(run, rec), `{"crc":"01234567","rec":` + rec + "}\n"} {
			_, err := journal.Parse(strings.NewReader(text))
			if backends.KindOf(err) != backends.KindRefused ||
				!strings.Contains(err.Error(), fmt.Sprintf("version %d; this program reads version 2", version)) {
				t.Error(err)
			}
		}
	}
}

// Every bit of an intact journal matters: a flipped bit is damage, also in the last line. Only at the very end, where it changes
// the newline of the last line, it looks like a record that was not written completely.
func TestEveryTurnedBitIsFound(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	testclass.OK(t, errors.Join(j.Append(intent("a", "vmk1", "vmk0"), outcome("a", "vmk0")), j.Close()))
	content := testclass.Read(t, file(root, j))
	for i := range content {
		for bit := range 8 {
			turned := bytes.Clone(content)
			turned[i] ^= 1 << bit
			_, err := journal.Parse(bytes.NewReader(turned))
			if last := i == len(content)-1; !last && backends.KindOf(err) != backends.KindRefused || last && err != nil {
				t.Fatalf("byte %d bit %d: %v", i, bit, err)
			}
		}
	}
}

// Lines of another run, with the right number and valid checksums, do not match.
func TestLinesOfAnotherRunAreFound(t *testing.T) {
	root := t.TempDir()
	var texts [2][][]byte
	var names [2]string
	for i := range texts {
		j := create(t, root)
		testclass.OK(t, errors.Join(j.Append(intent("a", nil, 1)), j.Append(outcome("a", 1)), j.Append(intent("b", nil, 1)), j.Close()))
		b := testclass.Read(t, file(root, j))
		texts[i], names[i] = bytes.SplitAfter(b, []byte("\n")), j.Run()
	}
	mixed := bytes.Join([][]byte{texts[0][0], texts[0][1], texts[1][2], texts[0][3]}, nil)
	if _, err := journal.Parse(bytes.NewReader(mixed)); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), "line 3") {
		t.Error(err)
	}
	path := filepath.Join(journal.Dir(root, names[0]), "journal.jsonl")
	testclass.OK(t, os.WriteFile(path, bytes.Join(texts[1], nil), 0o600))
	if _, err := journal.Read(root, names[0]); backends.KindOf(err) != backends.KindRefused ||
		!strings.Contains(err.Error(), "belongs to run "+names[1]) {
		t.Error(err)
	}
}

// A journal that was cut between two lines is consistent; the run's log shows what is missing.
func TestRecordsMissingAtTheEndAreFoundByTheLog(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	testclass.OK(t, errors.Join(j.Append(intent("host/a", nil, 1)), j.Append(intent("host/b", nil, 1)), j.Close()))
	log := `{"event":"done","node":"host/a"}` + "\n" + `{"event":"failed","node":"host/x"}` + "\n" +
		`{"event":"done","node":"open vm/v/vm-power"}` + "\n" + `{"event":"do`
	write := func(name, text string) {
		testclass.OK(t, os.WriteFile(filepath.Join(journal.Dir(root, j.Run()), name), []byte(text), 0o600))
	}
	waited := `{"event":"done","node":"answer/guest/v"}` + "\n" // changes nothing, and has no record
	write("log.jsonl", waited+strings.Replace(log, "open vm/v/vm-power", "host/b", 1))
	if _, err := journal.Read(root, j.Run()); err != nil {
		t.Errorf("whole: %v", err)
	}
	write("log.jsonl", log)
	if _, err := journal.Read(root, j.Run()); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), "vm/v/vm-power") {
		t.Errorf("an operation that only the log has: %v", err)
	}
	if _, _, err := journal.LastChanged(root); backends.KindOf(err) != backends.KindRefused || !strings.Contains(err.Error(), j.Run()) ||
		!strings.Contains(backends.HintOf(err), "--salvage") {
		t.Errorf("%v, hint %q", err, backends.HintOf(err))
	}
	testclass.OK(t, os.Remove(file(root, j)))
	if _, err := journal.Read(root, j.Run()); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("no journal, but a log: %v", err)
	}
}

// A journal accepts no more records if its file or directory was replaced: they would be lost.
func TestStateDirectoryThatChangesDuringTheRun(t *testing.T) {
	dir := func(root string, j *journal.Journal) string { return journal.Dir(root, j.Run()) }
	for name, harm := range map[string]func(root string, j *journal.Journal) error{
		"deleted":              func(root string, _ *journal.Journal) error { return os.RemoveAll(root) },
		"run deleted":          func(root string, j *journal.Journal) error { return os.RemoveAll(dir(root, j)) },
		"journal deleted":      func(root string, j *journal.Journal) error { return os.Remove(file(root, j)) },
		"directory read-only":  func(root string, j *journal.Journal) error { return os.Chmod(dir(root, j), 0o500) },
		"state read-only":      func(root string, _ *journal.Journal) error { return os.Chmod(root, 0o500) },
		"moved away":           func(root string, _ *journal.Journal) error { return os.Rename(root, root+"-old") },
		"replaced by its copy": func(root string, j *journal.Journal) error { return replaced(file(root, j)) },
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "state")
			j := create(t, root)
			testclass.OK(t, j.Append(intent("a", nil, 1)))
			testclass.OK(t, harm(root, j))
			if err := j.Append(intent("b", nil, 1)); !errors.Is(err, journal.ErrLost) || backends.HintOf(err) == "" {
				t.Errorf("%v", err)
			}
			if n := len(j.State().Records); n != 2 {
				t.Errorf("%d records", n)
			}
			_ = os.Chmod(root, 0o700) // for the cleanup
		})
	}
}

func replaced(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(path), os.WriteFile(path, b, 0o600))
}

// sick returns an error for every write.
type sick struct {
	journal.File
	left int
}

func (s *sick) Write(b []byte) (int, error) {
	if s.left--; s.left < 0 {
		return 0, syscall.EIO
	}
	return s.File.Write(b)
}

func TestBrokenJournalAcceptsNoMoreRecords(t *testing.T) {
	root := t.TempDir()
	j := create(t, root, journal.WithFile(func(f journal.File) journal.File { return &sick{f, 2} }))
	testclass.OK(t, j.Append(intent("a", nil, 1)))
	for range 2 {
		if err := j.Append(intent("b", nil, 1)); !errors.Is(err, syscall.EIO) || !errors.Is(j.Err(), syscall.EIO) {
			t.Errorf("append: %v, journal: %v", err, j.Err())
		}
	}
	if n := len(j.State().Records); n != 2 {
		t.Errorf("%d records", n)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if err := j.Append(intent("c", nil, 1)); err == nil {
		t.Error("a closed journal took a record")
	}
}
