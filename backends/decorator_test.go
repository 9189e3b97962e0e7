package backends_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A decorator has the methods of every optional interface, so a type assertion would find what is not there.
func TestOptionalInterfacesAreFoundByAs(t *testing.T) {
	assertion := regexp.MustCompile(`\.\((backends\.)?(ManySetter|ManyReader|Keeper|Aborter)\)`)
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if found := assertion.Find(text); found != nil {
			t.Errorf("%s: use backends.As instead of %s", path, found)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("%d files read: %v", files, err)
	}
}
