//go:build e2e

package cmd_test

import "testing"

func TestE2EOperatorsMeasureInTurn(t *testing.T) { takeTurns(t, 20) }
