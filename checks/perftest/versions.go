package perftest

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// OneRelease says how to give two guests the same perftest.
const OneRelease = "set a source of perftest for all guests in measure.perftest, or install one release in both"

// Refusal says that the two ends have releases of perftest that refuse each other; "" if they do not, or if that is not known.
func (p Pair) Refusal() string {
	if !sizing.PerftestRefuses(p.Client.Version, p.Server.Version) {
		return ""
	}
	return fmt.Sprintf("perftest %s on %s and %s on %s refuse each other", p.Client.Version, p.Client.VM, p.Server.Version, p.Server.VM)
}

// refused marks a test that is skipped because the releases of perftest refuse each other.
func (m *Measurement) refused(p Pair) {
	m.Refused, m.Verdict, m.Error, m.Hint = true, VerdictUnknown, "not measured: "+p.Refusal(), OneRelease
}
