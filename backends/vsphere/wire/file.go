package wire

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/soap"

	"github.com/rdma-setup/rdma-setup/backends"
)

// File reads the end of a file of a datastore, at most limit bytes. Path has vCenter's form: "[shared-01] vm-01/vmware.log". It
// requires the privilege Datastore.Browse, and is bounded by the limit of one call.
func (c *Conn) File(ctx context.Context, datacenter, path string, limit int) (string, error) {
	store, file, ok := strings.Cut(strings.TrimPrefix(path, "["), "] ")
	if !ok {
		return "", backends.Errorf(backends.KindPermanent, path, "", "that is not a path of a datastore")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.limitOf("Download"), errSilence)
	defer cancel()
	u := *c.soap.URL()
	u.User, u.Path = nil, "/folder/"+file
	u.RawQuery = url.Values{"dcPath": {datacenter}, "dsName": {store}}.Encode()
	began := time.Now()
	body, _, err := c.soap.Download(ctx, &u, &soap.Download{Method: "GET"})
	if c.cfg.Trace != nil {
		c.cfg.Trace(backends.Call{ID: fmt.Sprintf("%s-%d", c.traceID, c.requests.Add(1)), Method: "GET", Target: backends.Clean(path), Started: began, Took: time.Since(began),
			Outcome: outcome(ctx, err, nil)})
	}
	if err != nil {
		return "", Explain(err, path, "read the file")
	}
	defer body.Close()
	const most = 64 << 20 // a longer log takes too long to read
	kept := make([]byte, 0, 2*limit)
	buf := make([]byte, 32<<10)
	for r := io.LimitReader(body, most); ; {
		n, err := r.Read(buf)
		if kept = append(kept, buf[:n]...); len(kept) > 2*limit {
			kept = append(kept[:0], kept[len(kept)-limit:]...)
		}
		if err == io.EOF {
			return string(kept[max(0, len(kept)-limit):]), nil
		}
		if err != nil {
			return "", Explain(err, path, "read the file")
		}
	}
}
