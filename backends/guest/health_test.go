package guest

import (
	"slices"
	"testing"
)

// The lines are of Debian's 6.1.0-56 with the real driver, on a boot at which udev loaded it before vmxnet3.
func TestEarlyDriverIsNoProblemOnceAttached(t *testing.T) {
	const (
		early    = "[   92.747662] vmw_pvrdma 0000:02:00.1: failed to get vmxnet3 device"
		attached = "[  146.039719] vmw_pvrdma 0000:02:00.1: attached to device"
		other    = "[  150.000000] vmw_pvrdma 0000:02:00.1: failed to allocate interrupts"
	)
	for _, test := range []struct {
		name, log string
		want      []string
	}{
		{"nothing", "\n", []string{}},
		{"too early, and left so", early + "\n", []string{early}},
		{"loaded again", early + "\n" + attached + "\n", []string{}},
		{"unloaded since, and too early again", attached + "\n" + early + "\n", []string{early}},
		{"something else failed", early + "\n" + attached + "\n" + other + "\n", []string{other}},
	} {
		if got := troubles(test.log); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}
