package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

func TestRunIDsSortByTimeAndAreUnique(t *testing.T) {
	early, late := journal.NewRun(noon, "pvrdma"), journal.NewRun(noon.Add(time.Second), "sriov")
	if early >= late || !strings.HasPrefix(early, "20261120-120000-pvrdma-") {
		t.Errorf("%s, %s", early, late)
	}
	ids := map[string]bool{}
	for range 50 {
		ids[journal.NewRun(noon, "pvrdma")] = true
	}
	if len(ids) != 50 {
		t.Errorf("%d of 50 are different", len(ids))
	}
	if id := journal.NewRun(noon, "../../GPU direct"); strings.ContainsAny(id, "/. ") {
		t.Errorf("%q", id)
	}
}

func TestNextRunSortsAfterAllOthers(t *testing.T) {
	root := t.TempDir()
	before := ""
	for _, back := range []time.Duration{0, 0, time.Hour, 48 * time.Hour, -time.Minute} { // same second, set back twice, correct again
		h := header()
		h.Made = noon.Add(-back)
		h.Run = journal.NextRun(root, h.Made, "pvrdma")
		if h.Run <= before {
			t.Errorf("%s comes after %s and stands before it", h.Run, before)
		}
		before = h.Run
		j, err := journal.Create(root, h, nil)
		if err == nil {
			err = errors.Join(j.Append(begin("apply"), intent("a", nil, 1)), j.Close())
		}
		testclass.OK(t, err)
		if last, _, err := journal.LastChanged(root); err != nil || last != h.Run {
			t.Errorf("the last run is %s, %v; want %s", last, err, h.Run)
		}
	}
}

// A directory with an impossible date, or one that does not belong to a run, is ignored: new runs sort after the real ones.
func TestForeignDirectoriesAmongTheRuns(t *testing.T) {
	root := t.TempDir()
	h := header()
	h.Made = noon.Add(48 * time.Hour) // the clock was set back in the meantime
	h.Run = journal.NewRun(h.Made, "pvrdma")
	j, err := journal.Create(root, h, nil)
	if err == nil {
		err = errors.Join(j.Append(begin("apply"), intent("a", nil, 1)), j.Close())
	}
	testclass.OK(t, err)
	strays := []string{"20269999-120000-pvrdma-aaaa", "99991231-235959-pvrdma-aaaa", "copy of a run"}
	for _, name := range strays {
		testclass.OK(t, os.Mkdir(filepath.Join(root, "runs", name), 0o700))
	}
	if got, err := journal.InvalidEntries(root); err != nil || !slices.Equal(got, strays) {
		t.Errorf("%q, %v", got, err)
	}
	next := journal.NextRun(root, noon, "pvrdma")
	if next <= h.Run || next >= "2027" {
		t.Errorf("%s comes after %s", next, h.Run)
	}
	if last, _, err := journal.LastChanged(root); err != nil || last != h.Run {
		t.Errorf("%s, %v", last, err)
	}
	testclass.OK(t, os.WriteFile(filepath.Join(root, "runs", strays[1], "journal.jsonl"), nil, 0o600))
	if _, _, err := journal.LastChanged(root); backends.KindOf(err) != backends.KindRefused || !strings.Contains(err.Error(), strays[1]) {
		t.Errorf("with a journal it may be the run that is meant: %v", err)
	}
}

func begin(phase journal.Phase) journal.Record {
	return journal.Record{Type: journal.TypeBegin, Phase: phase}
}

func result(status string) journal.Record {
	return journal.Record{Type: journal.TypeResult, Status: status, Counts: map[string]int{"done": 1}}
}

func opening(node string) journal.Record {
	return journal.Record{Type: journal.TypeOpening, Node: node, Target: backends.VMRef("vm-01"), Kind: "vm-power",
		Prior: backends.ValueOf("on"), To: backends.ValueOf("on")}
}

func TestRunsAreListedWithTheirOutcome(t *testing.T) {
	root := t.TempDir()
	if runs, err := journal.Runs(root); err != nil || len(runs) != 0 {
		t.Fatalf("an empty state directory: %v, %v", runs, err)
	}
	cases := []struct {
		status  string
		changed bool
		records []journal.Record
	}{
		{"interrupted", false, nil},
		{"interrupted", true, []journal.Record{begin("apply"), intent("a", nil, 1)}},
		{"done", true, []journal.Record{begin("apply"), intent("a", nil, 1), outcome("a", 1), result("done")}},
		{"partial", true, []journal.Record{begin("apply"), intent("a", nil, 1), result("partial")}},
		{"interrupted", true, []journal.Record{begin("apply"), intent("a", nil, 1), result("partial"), begin("apply")}},
		{"rolled back", true, []journal.Record{begin("apply"), intent("a", nil, 1), result("done"), begin("rollback"), result("done")}},
		{"unchanged", false, []journal.Record{begin("apply"), result("unchanged")}},
	}
	var want []string
	last := ""
	for i, c := range cases {
		h := header()
		h.Made = noon.Add(time.Duration(-i) * time.Hour) // the clock was set back repeatedly
		j, err := journal.Create(root, h, nil)
		testclass.OK(t, err)
		if len(c.records) > 0 {
			err = j.Append(c.records...)
		}
		testclass.OK(t, errors.Join(err, j.Close()))
		want = append(want, c.status)
		if c.changed && last == "" {
			last = j.Run()
		}
	}
	slices.Reverse(want)
	runs, err := journal.Runs(root)
	testclass.OK(t, err)
	var got []string
	for _, r := range runs {
		got = append(got, r.Status)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if run, _, err := journal.LastChanged(root); err != nil || run != last {
		t.Errorf("last that changed something: %s, %v, want %s", run, err, last)
	}
}

func TestRunsThatCannotBeReadAreListedToo(t *testing.T) {
	root := t.TempDir()
	a, b := create(t, root), create(t, root)
	testclass.OK(t, os.WriteFile(file(root, a), nil, 0o600))
	testclass.OK(t, os.WriteFile(file(root, b), []byte("x\ny\n"), 0o600))
	testclass.OK(t, os.Mkdir(filepath.Join(root, "runs", "something else"), 0o700))
	runs, err := journal.Runs(root)
	if err != nil || len(runs) != 2 {
		t.Fatalf("%v, %v", runs, err)
	}
	got := map[string]string{runs[0].Run: runs[0].Status, runs[1].Run: runs[1].Status}
	if diff := cmp.Diff(map[string]string{a.Run(): "not begun", b.Run(): "unreadable"}, got); diff != "" {
		t.Error(diff)
	}
	if _, _, err := journal.LastChanged(root); backends.KindOf(err) != backends.KindRefused || !strings.Contains(err.Error(), b.Run()) {
		t.Errorf("one cannot be read, and may be the one that is meant: %v", err)
	}
}

func TestRunStoppedBeforeItsFirstChangeIsNamed(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	testclass.OK(t, errors.Join(j.Append(begin("apply")), j.Append(result("interrupted")), j.Close()))
	if _, _, err := journal.LastChanged(root); !strings.HasSuffix(backends.HintOf(err), "rdma-setup resume "+j.Run()) {
		t.Errorf("%v, hint %q", err, backends.HintOf(err))
	}
}

func TestRunThatEndedBeforeItsFirstChangeIsNamedBesideTheLastThatChanged(t *testing.T) {
	for status, named := range map[string]bool{"interrupted": true, "failed": true, "partial": true, "done": false, "unchanged": false} {
		t.Run(status, func(t *testing.T) { fruitless(t, status, named) })
	}
}

func fruitless(t *testing.T, status string, named bool) {
	t.Helper()
	root := t.TempDir()
	first := create(t, root)
	testclass.OK(t, errors.Join(first.Append(begin("apply")), first.Append(intent("a", nil, 1)), first.Close()))
	if run, stopped, err := journal.LastChanged(root); run != first.Run() || stopped != "" || err != nil {
		t.Errorf("last %q, stopped %q, %v", run, stopped, err)
	}
	h := header()
	h.Run = journal.NextRun(root, h.Made, "pvrdma")
	second, err := journal.Create(root, h, nil)
	if err == nil {
		err = errors.Join(second.Append(begin("apply")), second.Append(result(status)), second.Close())
	}
	testclass.OK(t, err)
	if run, stopped, err := journal.LastChanged(root); run != first.Run() || (stopped == second.Run()) != named || err != nil {
		t.Errorf("last %q, stopped %q, %v", run, stopped, err)
	}
}

func TestSecondRunOnAVCenterIsRefusedAndNamesTheFirst(t *testing.T) {
	for _, dir := range []string{"state", "site [prod]", "a*b?c"} { // pattern characters in the path have no effect
		t.Run(dir, func(t *testing.T) { secondRunIsRefused(t, filepath.Join(t.TempDir(), dir)) })
	}
}

func secondRunIsRefused(t *testing.T, root string) {
	j := create(t, root)
	first := journal.Holder{Run: j.Run(), PID: os.Getpid(), User: "ada", Since: noon}
	lock, err := journal.Acquire(t.Context(), root, "50a1", first)
	testclass.OK(t, err)
	if runs, err := journal.Runs(root); err != nil || runs[0].Status != "running" {
		t.Errorf("%v, %v", runs, err)
	}
	_, err = journal.Acquire(t.Context(), root, "50a1", journal.Holder{Run: "another"})
	if backends.KindOf(err) != backends.KindRefused {
		t.Fatal(err)
	}
	for _, word := range []string{j.Run(), "ada", "2026-11-20 12:00:00"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	other, err := journal.Acquire(t.Context(), root, "../77b2", journal.Holder{Run: "another"})
	if err != nil {
		t.Fatalf("another vCenter: %v", err)
	}
	testclass.OK(t, errors.Join(other.Release(), lock.Release()))
	if runs, err := journal.Runs(root); err != nil || runs[0].Status != "interrupted" {
		t.Errorf("after the release: %v, %v", runs, err)
	}
	again, err := journal.Acquire(t.Context(), root, "50a1", first)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := journal.Acquire(ended, root, "50a1", first); err == nil {
		_ = l.Release() // released: taking it at once is correct too
	}
}

// Runs without a common target do not block each other; a dead run blocks none of them.
func TestRunsOverDisjointTargetsGoSideBySide(t *testing.T) {
	root := t.TempDir()
	take := func(run string, targets ...string) (*journal.Lock, error) {
		return journal.Acquire(t.Context(), root, "50a1", journal.Holder{Run: run, Targets: targets})
	}
	first, err := take("20260101-000000-x-aaaa", "host/esx-01", "vm/vm-01")
	testclass.OK(t, err)
	second, err := take("20260101-000000-x-bbbb", "host/esx-02", "vm/vm-02")
	if err != nil {
		t.Fatalf("disjoint: %v", err)
	}
	for _, targets := range [][]string{{"host/esx-03", "vm/vm-01"}, nil} {
		if _, err := take("20260101-000000-x-cccc", targets...); backends.KindOf(err) != backends.KindRefused ||
			!strings.Contains(err.Error(), "20260101-000000-x-") {
			t.Errorf("%q: %v", targets, err)
		}
	}
	testclass.OK(t, errors.Join(first.Release(), second.Release()))
	third, err := take("20260101-000000-x-cccc", "vm/vm-01", "host/esx-02")
	testclass.OK(t, err)
	if files, err := filepath.Glob(filepath.Join(root, "locks", "*-*.lock")); err != nil || len(files) != 1 {
		t.Errorf("%q, %v", files, err)
	}
	if err := third.Release(); err != nil {
		t.Error(err)
	}
}

func TestAnswersThatChangedAreShownWithTheDifference(t *testing.T) {
	root := t.TempDir()
	h := header()
	h.Answers = "a: 1\nb: 2\nc: 3\nd: 4\n"
	j, err := journal.Create(root, h, nil)
	testclass.OK(t, err)
	defer func() { _ = j.Close() }()
	st := j.State()
	if err := errors.Join(st.Same("50a1", h.Answers), st.Same("", "")); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct{ now, says string }{
		"changed":     {"a: 1\nb: 9\nc: 3\nd: 4\n", "- b: 2\n+ b: 9"},
		"removed":     {"a: 1\nd: 4\n", "- b: 2\n- c: 3"},
		"added":       {"a: 1\nb: 2\nc: 3\nd: 4\ne: 5\n", "+ e: 5"},
		"two places":  {"a: 0\nb: 2\nc: 3\nd: 5\n", "- a: 1\n+ a: 0\n- d: 4\n+ d: 5"},
		"all of it":   {strings.Repeat("x\n", 60), "lines more)"},
		"white space": {"a: 1\nb: 2 \nc: 3\nd: 4\n", "- b: 2\n+ b: 2 "},
	} {
		err := st.Same("50a1", c.now)
		if backends.KindOf(err) != backends.KindRefused || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEntriesKeepTheFirstPriorAndTheLastFound(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	kept := backends.Kept{Items: []backends.Item{{Kind: backends.ItemFile, Name: "/etc/x"}}}
	a := intent("a", "vmk1", "vmk0")
	a.Kept = &kept
	failed := journal.Record{Type: journal.TypeOutcome, Node: "a", Err: "no"}
	if err := j.Append(begin("apply"), a, failed, begin("apply"), intent("a", "half", "vmk0"), outcome("a", "vmk0"),
		intent("b", nil, 1), begin("rollback"), intent("c", 1, 2)); err != nil {
		t.Fatal(err)
	}
	es := j.State().Entries()
	if len(es) != 2 {
		t.Fatalf("%d entries", len(es))
	}
	if e := es[0]; e.Prior != backends.ValueOf("vmk1") || e.Kept == nil || len(e.Found) != 1 || e.Found[0] != backends.ValueOf("vmk0") ||
		e.Open {
		t.Errorf("a: %+v", e)
	}
	if e := es[1]; !e.Prior.IsAbsent() || e.Found != nil || !e.Open {
		t.Errorf("b: %+v", e)
	}
}

func TestBracketsStayOpenUntilTheyAreClosedWell(t *testing.T) {
	node := "vm/vm-01/vm-power"
	closed := func(ok bool) journal.Record {
		return journal.Record{Type: journal.TypeClosed, Node: node, OK: ok}
	}
	again := opening(node)
	again.Prior, again.To = backends.ValueOf("off"), backends.ValueOf("off")
	for name, c := range map[string]struct {
		records []journal.Record
		open    bool
	}{
		"opening":        {[]journal.Record{opening(node)}, true},
		"failed to open": {[]journal.Record{opening(node), {Type: journal.TypeOpened, Node: node}}, true},
		"opened again":   {[]journal.Record{opening(node), begin("apply"), again}, true},
		"failed close":   {[]journal.Record{opening(node), closed(false)}, true},
		"closed":         {[]journal.Record{opening(node), closed(true)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			j := create(t, t.TempDir())
			testclass.OK(t, j.Append(c.records...))
			open := j.State().OpenBrackets()
			if (len(open) == 1) != c.open {
				t.Fatalf("%v", open)
			}
			if c.open && (open[0].Leave != backends.ValueOf("on") || open[0].Found != backends.ValueOf("on")) {
				t.Errorf("leave %s, found %s", open[0].Leave, open[0].Found)
			}
		})
	}
}

// A guest that the run has powered on may still be starting until an operation was done in it.
func TestGuestsThatMayStillBeStarting(t *testing.T) {
	power := func(vm string) journal.Record {
		return journal.Record{Type: journal.TypeClosing, Node: "vm/" + vm + "/vm-power", Target: backends.VMRef(vm),
			Kind: string(backends.BracketVMPower)}
	}
	did := func(vm string, ok bool) journal.Record {
		return journal.Record{Type: journal.TypeOutcome, Node: "guest/" + vm, Target: backends.GuestRef(vm), OK: ok}
	}
	for name, c := range map[string]struct {
		records []journal.Record
		want    []string
	}{
		"nothing begun":              {nil, nil},
		"powered on":                 {[]journal.Record{power("a"), power("b")}, []string{"a", "b"}},
		"heard of":                   {[]journal.Record{power("a"), power("b"), did("a", true)}, []string{"b"}},
		"a failure says nothing":     {[]journal.Record{power("a"), did("a", false)}, []string{"a"}},
		"powered on again":           {[]journal.Record{power("a"), did("a", true), power("a")}, []string{"a"}},
		"heard of before, not after": {[]journal.Record{did("a", true), power("a"), power("a")}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&journal.State{Records: c.records}).UnansweredGuests(); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	root := f.TempDir()
	j, err := journal.Create(root, header(), nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(j.Append(begin("apply"), opening("x"), intent("a", nil, 1), outcome("a", 1), result("done")),
		j.Close()); err != nil {
		f.Fatal(err)
	}
	content, err := os.ReadFile(file(root, j))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content, false)
	f.Add(content[:len(content)-20], false)
	f.Add([]byte("{}\n"), false)
	// Records without their checksums: the fuzzer cannot guess these.
	var bare []byte
	for line := range strings.Lines(string(content)) {
		_, rec, _ := strings.Cut(line, `"rec":`)
		bare = append(bare, strings.TrimSuffix(rec, "}\n")+"\n"...)
	}
	f.Add(bare, true)
	f.Fuzz(func(t *testing.T, b []byte, sum bool) {
		text := string(b)
		if sum {
			text = ""
			prev := ""
			for line := range strings.Lines(string(b)) {
				var l struct{ Sum string }
				text += chained(j.Run(), prev, strings.TrimSuffix(line, "\n")) + "\n"
				if json.Unmarshal([]byte(text[strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1:]), &l) == nil {
					prev = l.Sum
				}
			}
		}
		st, err := journal.Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		if len(st.Records) == 0 || st.Header.Version != journal.Version {
			t.Errorf("a journal without a header was read: %+v", st)
		}
		_, _, _, _ = st.Entries(), st.OpenIntents(), st.OpenBrackets(), st.Finished()
	})
}
