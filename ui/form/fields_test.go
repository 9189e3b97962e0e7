package form

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// Text that is typed or pasted right after Tab belongs to the next field, even before the screen is redrawn.
func TestKeysAfterTabAreForTheNextField(t *testing.T) {
	first, second := "", ""
	f := newFields(theme.Theme{}, question{Title: "A", Value: &first}, question{Title: "B", Value: &second})
	f.Init()
	for _, k := range []tea.KeyPressMsg{{Code: 'a', Text: "a"}, {Code: tea.KeyTab}, {Code: 'b', Text: "b"},
		{Code: tea.KeyTab, Mod: tea.ModShift}, {Code: 'c', Text: "c"}} {
		f.Update(nil, k)
	}
	if first != "ac" || second != "b" {
		t.Errorf("%q and %q", first, second)
	}
}
