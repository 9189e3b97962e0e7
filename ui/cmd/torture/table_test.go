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

// A table gathers what became of each case and writes it to bin/torture when its test has ended.
type table struct {
	mu   sync.Mutex
	head string
	rows []string
}

// newTable begins a table; columns are separated by tabs.
func newTable(t *testing.T, name, head string) *table {
	t.Helper()
	b := &table{head: head}
	t.Cleanup(func() {
		dir := filepath.Join("..", "..", "..", "bin", "torture")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Error(err)
			return
		}
		if err := os.WriteFile(filepath.Join(dir, name+".tsv"), []byte(b.text()), 0o644); err != nil {
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
}

func (b *table) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.rows)
	return b.head + "\n" + strings.Join(b.rows, "\n") + "\n"
}

// counts tells how often each verdict fell.
func (b *table) counts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := map[string]int{}
	for _, r := range b.rows {
		n[r[strings.LastIndexByte(r, '\t')+1:]]++
	}
	return fmt.Sprintf("%d cases: %v", len(b.rows), n)
}
