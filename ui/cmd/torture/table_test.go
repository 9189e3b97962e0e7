package torture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A table collects the result of each case in bin/torture: row by row, so that an interrupted test leaves its results so far, and
// sorted when the test has ended.
type table struct {
	mu   sync.Mutex
	head string
	rows []string
	file *os.File
}

// newTable creates a table; columns are separated by tabs.
func newTable(t *testing.T, name, head string) *table {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "bin", "torture")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, name+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	b := &table{head: head, file: f}
	fmt.Fprintln(f, head)
	t.Cleanup(func() {
		f.Close()
		if err := os.WriteFile(f.Name(), []byte(b.text()), 0o644); err != nil {
			t.Error(err)
		}
		t.Logf("%s: %s", name, b.counts())
	})
	return b
}

// row adds a case. The last cell is its verdict.
func (b *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = strings.Join(strings.Fields(fmt.Sprint(c)), " ")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = append(b.rows, strings.Join(texts, "\t"))
	fmt.Fprintln(b.file, b.rows[len(b.rows)-1])
}

func (b *table) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.rows)
	return b.head + "\n" + strings.Join(b.rows, "\n") + "\n"
}

// counts returns how often each verdict occurred.
func (b *table) counts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := map[string]int{}
	for _, r := range b.rows {
		n[r[strings.LastIndexByte(r, '\t')+1:]]++
	}
	return fmt.Sprintf("%d cases: %v", len(b.rows), n)
}
