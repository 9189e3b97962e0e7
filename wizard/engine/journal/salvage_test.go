package journal_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// TestRecoveryProvesOnlyWhatIntactRecordsShow damages a journal of two attempts line by line.
func TestRecoveryProvesOnlyWhatIntactRecordsShow(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	records := []journal.Record{ // from line 2 on
		begin("apply"), intent("a", 1, 3), {Type: journal.TypeOutcome, Node: "a", Err: "half"}, intent("b", 1, 2), outcome("b", 2),
		begin("apply"), intent("a", 2, 3), outcome("a", 3), result("done"),
	}
	for _, r := range records {
		testclass.OK(t, j.Append(r))
	}
	testclass.OK(t, j.Close())
	content := testclass.Read(t, file(root, j))
	lines := bytes.SplitAfter(content, []byte("\n"))
	lines = lines[:len(lines)-1]
	turned := func(n int) []byte { return bytes.Replace(lines[n-1], []byte(`"rec"`), []byte(`"rex"`), 1) }
	announced := []journal.Announced{{Node: "a", From: backends.ValueOf(1)}, {Node: "b", From: backends.ValueOf(1)},
		{Node: "c", From: backends.ValueOf(1)}}
	other := &journal.Header{Answers: "mode: pvrdma\n"}
	for name, c := range map[string]struct {
		harm     func() [][]byte
		undo     string // nodes whose prior values are known
		unproven string
		bad      int
	}{
		"out of order":        {func() [][]byte { l := slices.Clone(lines); l[4], l[6] = l[6], l[4]; return l }, "a=1 b=1", "", 0},
		"a line twice":        {func() [][]byte { return slices.Insert(slices.Clone(lines), 5, lines[4]) }, "a=1 b=1", "", 1},
		"an outcome":          {func() [][]byte { l := slices.Clone(lines); l[8] = turned(9); return l }, "a=1 b=1", "c", 1},
		"a first intent":      {func() [][]byte { l := slices.Clone(lines); l[2] = turned(3); return l }, "b=1", "a c", 1},
		"an only intent":      {func() [][]byte { l := slices.Clone(lines); l[4] = turned(5); return l }, "a=1", "b c", 1},
		"a line gone":         {func() [][]byte { return slices.Delete(slices.Clone(lines), 4, 5) }, "a=1", "b c", 0},
		"the last line":       {func() [][]byte { l := slices.Clone(lines); l[9] = turned(10); return l }, "a=1 b=1", "c", 1},
		"the header":          {func() [][]byte { l := slices.Clone(lines); l[0] = turned(1); return l }, "a=1 b=1", "c", 1},
		"nothing can be read": {func() [][]byte { return [][]byte{[]byte("\x7fELF\n")} }, "", "a b c", 1},
		"a line of another run": {func() [][]byte {
			return append(slices.Clone(lines), []byte(chained("20200101-000000-x-aaaa", "", `{"seq":11}`)+"\n"))
		}, "a=1 b=1", "c", 1},
	} {
		t.Run(name, func(t *testing.T) {
			testclass.OK(t, os.WriteFile(file(root, j), bytes.Join(c.harm(), nil), 0o600))
			if _, err := journal.Read(root, j.Run()); !errors.Is(err, journal.ErrDamaged) ||
				!strings.Contains(backends.HintOf(err), "rollback "+j.Run()+" --salvage") {
				t.Errorf("read: %v", err)
			}
			got, err := journal.Recover(root, j.Run(), announced, other)
			if err == nil {
				err = got.Save(root)
			}
			testclass.OK(t, err)
			st, err := journal.Read(root, j.Run())
			testclass.OK(t, err)
			var undo, unproven []string
			for _, e := range st.Entries() {
				undo = append(undo, e.Node+"="+e.Prior.String())
			}
			for _, u := range st.Salvage().Unproven {
				unproven = append(unproven, u.Node)
			}
			slices.Sort(unproven)
			if diff := cmp.Diff([]string{c.undo, c.unproven}, []string{strings.Join(undo, " "), strings.Join(unproven, " ")}); diff != "" {
				t.Error(diff)
			}
			if n := len(st.Salvage().Lines); n != c.bad {
				t.Errorf("%d damaged lines: %v", n, st.Salvage().Lines)
			}
		})
	}
}

// A line that the run itself wrote, but after other records than the lines before it (two copies of a journal that were continued
// separately and mixed), has the right number and does not match.
func TestLinesOfTwoCopiesDoNotMix(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	testclass.OK(t, j.Close())
	begun := testclass.Read(t, file(root, j))
	var copies [2][][]byte
	for i := range copies {
		testclass.OK(t, os.WriteFile(file(root, j), begun, 0o600))
		again, err := journal.Open(root, j.Run())
		if err == nil {
			err = errors.Join(again.Append(intent("a", nil, i)), again.Append(outcome("a", i)), again.Close())
		}
		testclass.OK(t, err)
		b := testclass.Read(t, file(root, j))
		copies[i] = bytes.SplitAfter(b, []byte("\n"))
	}
	mixed := bytes.Join([][]byte{copies[0][0], copies[0][1], copies[1][2]}, nil)
	if _, err := journal.Parse(bytes.NewReader(mixed)); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), "line 3") {
		t.Error(err)
	}
}

// A stage that begins in the middle of an attempt may announce a setting again: its intent is not the first, even if only one
// record is missing since the attempt began.
func TestRecoveryIgnoresTheIntentOfALaterStage(t *testing.T) {
	root := t.TempDir()
	j := create(t, root)
	stage := func(n int) journal.Record {
		return journal.Record{Type: journal.TypeStage, Stage: n, Plan: []byte(`{}`)}
	}
	for _, r := range []journal.Record{
		begin("apply"), stage(1), intent("a", 1, 3), {Type: journal.TypeOutcome, Node: "a", Err: "half"}, intent("b", 1, 2), outcome("b", 2),
		stage(2), intent("a", 2, 3), outcome("a", 3), result("done"),
	} {
		testclass.OK(t, j.Append(r))
	}
	testclass.OK(t, j.Close())
	content := testclass.Read(t, file(root, j))
	testclass.OK(t, os.WriteFile(file(root, j), bytes.Replace(content, []byte(`{"seq":4,`), []byte(`{"seq":9,`), 1), 0o600))
	got, err := journal.Recover(root, j.Run(), []journal.Announced{{Node: "a", From: backends.ValueOf(1)},
		{Node: "b", From: backends.ValueOf(1)}}, nil)
	testclass.OK(t, err)
	if e := got.State.Entries(); len(e) != 1 || e[0].Node != "b" {
		t.Errorf("believed: %v", e)
	}
	if u := got.Salvage.Unproven; len(u) != 1 || u[0].Node != "a" {
		t.Errorf("not proven: %v", u)
	}
}
