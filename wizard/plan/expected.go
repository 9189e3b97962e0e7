package plan

import (
	"cmp"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// ExpectedOpen returns how long opening a bracket is expected to take without measurements: evacuating a host about ten minutes,
// shutting a guest down two. These and the values below are cautious assumptions, not limits.
func ExpectedOpen(b Bracket) time.Duration {
	switch {
	case b.InMaintenance():
		return time.Second
	case b.Kind == backends.BracketReboot, b.Kind == backends.BracketMaintenance:
		return 10 * time.Minute
	case b.Kind == backends.BracketVMPower:
		return 2 * time.Minute
	}
	return 10 * time.Second
}

// ExpectedClose returns how long closing a bracket is expected to take: servers with much memory boot for a quarter of an hour.
func ExpectedClose(b Bracket) time.Duration {
	closing := map[backends.BracketKind]time.Duration{
		backends.BracketReboot: 15 * time.Minute, backends.BracketVMPower: 3 * time.Minute, backends.BracketMaintenance: time.Minute,
	}
	return cmp.Or(closing[b.Kind], 10*time.Second)
}

// MinutesOut returns how many minutes a host or a VM is expected to be out of service for a bracket of this kind.
func MinutesOut(k backends.BracketKind) int {
	b := Bracket{Kind: k}
	return int((ExpectedOpen(b) + ExpectedClose(b)).Minutes())
}

// ExpectedChange returns how long a change is expected to take.
func ExpectedChange(k backends.Kind) time.Duration {
	switch k {
	case backends.KindOFED, backends.KindBuild:
		return 30 * time.Minute
	case backends.KindComponent, backends.KindImageComponent, backends.KindPackages, backends.KindFirmwareImage:
		return 5 * time.Minute
	case backends.KindModules, backends.KindFirmware:
		return time.Minute
	}
	return 10 * time.Second
}
