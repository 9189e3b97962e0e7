package guest

import "testing"

// Nothing that a tool prints makes the reader of ports panic, and what it reads is within bounds.
func FuzzPortQoS(f *testing.F) {
	f.Add("port b8:59:9f:00:00:02\nprio-pfc 0:off 3:on \ndscp-prio 26:3 \nprio-buffer 0:0 3:1 \necn 3 1\necn 3 1\n")
	f.Add(
		"port b8:59:9f:00:00:02\nPriority trust state: dscp\ndscp2prio mapping:\n\tprio:3 dscp:26,\nPFC configuration:\n\tenabled     0   " +
			"0   0   1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for mac, q := range readQoS(text) {
			if mac == "" || q.Trust == "" {
				t.Errorf("%q: %+v", mac, q)
			}
			for _, p := range q.PFC {
				if p < 0 || p >= priorities {
					t.Errorf("PFC of priority %d", p)
				}
			}
		}
	})
}
