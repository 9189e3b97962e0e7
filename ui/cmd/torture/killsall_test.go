//go:build torture

package torture

import "testing"

// TestTortureKills kills runs with kill -9 at random instants, inside remote commands and between them, while commands
// take as long as real ones under a scaled clock. Judge is the witness, which shares no code with the product.
//
// RDMA_SETUP_TORTURE_SEED repeats a series, RDMA_SETUP_TORTURE_KILLS sets the number of kills (default 300), and
// RDMA_SETUP_TORTURE_SCALE the clock's scale (default 0.1).
func TestTortureKills(t *testing.T) { killRandomly(t, 300, modes, systems) }
