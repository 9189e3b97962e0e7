//go:build torture

package torture

import "testing"

func TestTortureCuts(t *testing.T) {
	for _, m := range modes[:3] {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			cuts(t, m, 40)
		})
	}
}
