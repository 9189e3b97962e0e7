package system

import (
	"context"
	"strconv"
	"strings"
)

// Resync gives the bytes that vSAN has to copy before its objects are whole again, as a host sees it; false where the host
// has no vSAN or does not tell.
func (s *System) Resync(ctx context.Context, host string) (bytes int64, vsan bool) {
	rows, err := s.cli.Run(ctx, host, "vsan", "debug", "resync", "summary", "get")
	if err != nil || len(rows) == 0 {
		return 0, false
	}
	for name, value := range rows[0] { // builds differ in what letters they make capitals
		if strings.EqualFold(name, "TotalBytesLeftToResync") {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
