//go:build e2e

package cmd_test

import "testing"

func TestE2EOperatorsMeasureInTurn(t *testing.T) {
	t.Parallel()
	takeTurns(t, 20)
}
