package sizing

import (
	"strconv"
	"strings"
)

// oldestPeer is the protocol version that every release of perftest with the check requires of its peer; releases below it have no
// such check (linux-rdma/perftest, src/perftest_communication.c, check_version_compatibility, since commit 583a467 of 2020). It is
// what "ib_send_bw --version" prints, not the version of a package: Debian's 4.5+0.17 is 6.06.
const oldestPeer = 5.70

// PerftestRefuses reports whether two releases of perftest cannot measure with each other, by the protocol versions that they print.
// Equality is not required, and an unknown version refuses nobody.
func PerftestRefuses(a, b string) bool {
	x, y := protocol(a), protocol(b)
	return x > 0 && y > 0 && (x < oldestPeer) != (y < oldestPeer)
}

// PerftestOlder reports whether a is an older release than b.
func PerftestOlder(a, b string) bool { return protocol(a) < protocol(b) }

// protocol parses a version as perftest does, by atof(3); 0 is unknown.
func protocol(s string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return 0
	}
	return v
}
