package session

import "testing"

// Counters that could not be read must not count as unchanged, because that would be reported as a TCP fallback.
func TestUnreadPacketCountersAreUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		rows []map[string]string
		sum  int64
		ok   bool
	}{
		"told":           {[]map[string]string{{"PacketsReceived": "7", "PacketsSent": "5", "QueuePairsAllocated": "3"}}, 12, true},
		"standing still": {[]map[string]string{{"PacketsReceived": "0", "PacketsSent": "0"}}, 0, true},
		"nothing":        {nil, 0, false},
		"no packets":     {[]map[string]string{{"QueuePairsAllocated": "3"}}, 0, false},
		"no number":      {[]map[string]string{{"PacketsReceived": "n/a", "PacketsSent": "5"}}, 0, false},
	} {
		if sum, ok := packets(c.rows); sum != c.sum || ok != c.ok {
			t.Errorf("%s: %d %v", name, sum, ok)
		}
	}
}
