package vsphere_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// opening is the beginning of every reply.
const opening = `<?xml version="1.0"?><Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><RetrievePropertiesExResponse xmlns="urn:vim25"><returnval><token>`

// endless answers with a reply that continues, one piece at a time, until nobody reads it any more.
func endless(piece string, pause time.Duration) rule {
	return func(_ int, w http.ResponseWriter, _ func()) bool {
		text := opening
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return true
			}
			if pause > 0 {
				if err := http.NewResponseController(w).Flush(); err != nil {
					return true
				}
				time.Sleep(pause) // the speed of the reply matters here
			}
			text = piece
		}
	}
}

// TestRepliesWithoutEnd receives replies that never end: a fast one ends at its size limit, a slow one at the time limit of one
// call, and both are reported.
func TestRepliesWithoutEnd(t *testing.T) {
	testclass.Plain(t)
	w := start(t, nil, nil)
	const limit = 1 << 20
	for _, tt := range []struct {
		name  string
		piece string
		pause time.Duration
		kind  backends.ErrorKind
		says  string
	}{
		{"in one word", strings.Repeat("x", 64<<10), 0, backends.KindPermanent, "longer than 1048576 bytes"},
		{"in many objects", "</token><objects><obj type=\"HostSystem\">host-1</obj></objects><token>", 0, backends.KindPermanent,
			"longer than 1048576 bytes"},
		{"a byte at a time", "x", 200 * time.Millisecond, backends.KindUnreachable, "did not answer in time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := between(t, w)
			cfg := p.config()
			cfg.ReplyLimit = limit
			if tt.pause > 0 {
				cfg.CallLimit = 10 * time.Second
			}
			c, err := vsphere.Dial(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			p.on("RetrievePropertiesEx", endless(tt.piece, tt.pause))
			before := c.Cost().Received
			_, err = c.Inventory(t.Context(), everything)
			check(t, err, tt.kind, tt.says)
			calls := int64(p.calls("RetrievePropertiesEx"))
			if got := c.Cost().Received - before; got > calls*(limit+64<<10) {
				t.Errorf("%d bytes were read in %d calls", got, calls)
			}
			if tt.pause == 0 && calls > 3 { // each time for a smaller page
				t.Errorf("it was asked %d times", calls)
			}
		})
	}
}
