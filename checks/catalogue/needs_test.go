package catalogue

import (
	"slices"
	"testing"
)

// The tables name only existing rows, and no row depends on itself.
func TestTheTablesOfTheChain(t *testing.T) {
	rows := map[string][]string{}
	for _, c := range Checks() {
		rows[c.ID] = needs(c)
	}
	for id, on := range rests {
		for _, other := range append([]string{id}, on...) {
			if _, known := rows[other]; !known {
				t.Errorf("%s: there is no row %s", id, other)
			}
		}
	}
	var walk func(id string, path []string)
	walk = func(id string, path []string) {
		if slices.Contains(path, id) {
			t.Fatalf("%v leads back to %s", path, id)
		}
		for _, on := range rows[id] {
			walk(on, append(path, id))
		}
	}
	for id := range rows {
		walk(id, nil)
	}
}
