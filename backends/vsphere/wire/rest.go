package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vmware/govmomi/vapi/cis/tasks"
	"github.com/vmware/govmomi/vim25/soap"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A RESTError is an error of the vSphere Automation API.
type RESTError struct {
	Status int
	Type   string // ALREADY_EXISTS, NOT_ALLOWED_IN_CURRENT_STATE, ...
	Text   string
}

func (e *RESTError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("HTTP status %d %s", e.Status, e.Type)
	}
	return e.Text
}

// IsREST reports whether the API returned an error of a type, such as NOT_FOUND.
func IsREST(err error, kind string) bool {
	var e *RESTError
	return errors.As(err, &e) && e.Type == kind
}

func (e *RESTError) classify() (backends.ErrorKind, string) {
	switch {
	case e.Status == http.StatusUnauthorized:
		return backends.KindAuth, "check that the account may use the vSphere Automation API"
	case e.Status == http.StatusForbidden:
		return backends.KindPermission, "print the role that is needed with: rdma-setup generate role"
	case e.Status == http.StatusServiceUnavailable:
		return backends.KindTransient, "wait until vCenter's services are up and the host answers, then run rdma-setup resume"
	case e.Type == "NOT_ALLOWED_IN_CURRENT_STATE":
		return backends.KindTransient, "another operation of Lifecycle Manager is under way; wait for it to end, then run rdma-setup resume"
	}
	return backends.KindPermanent, ""
}

// sessionHeader carries the session of the vSphere Automation API, which is separate from that of the Web Services API.
const sessionHeader = "vmware-api-session-id"

// REST makes one call of the vSphere Automation API: "GET", "/api/esx/settings/...". It logs in on first use, with the same
// account (POST /api/session, since vCenter 7.0 U2). body and into may be nil. Errors have a *RESTError in their chain.
func (c *Conn) REST(ctx context.Context, method, path string, body, into any) error {
	session, err := c.restSession(ctx, "")
	if err != nil {
		return err
	}
	err = c.rest(ctx, method, path, session, body, into)
	if e, is := errors.AsType[*RESTError](err); is && e.Status == http.StatusUnauthorized { // the session has expired
		if session, err = c.restSession(ctx, session); err == nil {
			err = c.rest(ctx, method, path, session, body, into)
		}
	}
	return err
}

// restSession returns the current session, and replaces a stale one.
func (c *Conn) restSession(ctx context.Context, stale string) (string, error) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	if c.api.session != stale {
		return c.api.session, nil
	}
	var password string
	if c.cfg.Password != nil {
		var err error
		if password, err = c.cfg.Password(ctx); err != nil {
			return "", err
		}
	}
	id := ""
	err := c.send(ctx, http.MethodPost, "/api/session", func(r *http.Request) { r.SetBasicAuth(c.cfg.Username, password) }, nil, &id)
	if err == nil && id == "" {
		err = errors.New("it did not create a session")
	}
	if err != nil {
		return "", Explain(err, "vCenter", "log in to the vSphere Automation API")
	}
	c.api.session = id
	return id, nil
}

func (c *Conn) rest(ctx context.Context, method, path, session string, body, into any) error {
	return c.send(ctx, method, path, func(r *http.Request) { r.Header.Set(sessionHeader, session) }, body, into)
}

func (c *Conn) send(ctx context.Context, method, path string, proof func(*http.Request), body, into any) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.limitOf(path), errSilence)
	defer cancel()
	began := time.Now()
	defer func() {
		if c.cfg.Trace != nil {
			c.cfg.Trace(backends.Call{ID: fmt.Sprintf("%s-%d", c.traceID, c.requests.Add(1)), Method: method, Target: backends.Clean(path),
				Started: began,
				Took:    time.Since(began), Outcome: outcome(ctx, err, nil)})
		}
	}()
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	u := *c.soap.URL()
	u.User, u.RawQuery = nil, ""
	u.Path, u.RawQuery, _ = strings.Cut(path, "?")
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.soap.UserAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	proof(req)
	c.meter.calls.Add(1)
	c.meter.sent.Add(int64(len(text)))
	res, err := c.meter.base.RoundTrip(req)
	if err != nil {
		if context.Cause(ctx) == errSilence {
			return errors.Join(errSilence, err)
		}
		return err
	}
	defer res.Body.Close()
	limit := c.meter.limits().bytes
	reply, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	c.meter.received.Add(int64(len(reply)))
	switch {
	case err != nil:
		return err
	case int64(len(reply)) > limit:
		return fmt.Errorf("the reply is longer than %d bytes", limit)
	case res.StatusCode >= 300:
		return restError(res.StatusCode, reply)
	case into == nil || len(reply) == 0:
		return nil
	}
	if err := json.Unmarshal(reply, into); err != nil {
		return fmt.Errorf("the reply cannot be read: %w", err)
	}
	return nil
}

// failure is an error of the API (Vapi.Std.Errors.Error).
type failure struct {
	Type     string    `json:"error_type"`
	Messages []Message `json:"messages"`
}

func restError(status int, reply []byte) error {
	var e failure
	out := &RESTError{Status: status}
	if json.Unmarshal(reply, &e) == nil {
		out.Type, out.Text = e.Type, Sentences(e.Messages)
	}
	return out
}

// A Message is a message of the API (Vapi.Std.LocalizableMessage).
type Message struct {
	Default   string `json:"default_message"`
	Localized string `json:"localized"`
}

// Sentences joins messages, cleaned for terminals.
func Sentences(list []Message) string {
	var parts []string
	for _, m := range list {
		parts = append(parts, strings.TrimSpace(backends.Clean(cmp.Or(m.Localized, m.Default))))
	}
	return strings.Join(parts, " ")
}

// RESTTask starts an operation that the API runs as a task, and waits for it at most for limit; a longer one continues in
// vCenter. The state of such a task is polled at increasing intervals, because vCenter does not push it.
func (c *Conn) RESTTask(ctx context.Context, limit time.Duration, path string, body, result any) error {
	var id string
	if err := c.REST(ctx, http.MethodPost, path, body, &id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errEndless)
	defer cancel()
	broken := 0
	for wait := 50 * time.Millisecond; ; wait = min(wait*3/2, 5*time.Second) {
		if !backends.Sleep(ctx, wait) {
			return unended(ctx, id, limit)
		}
		var info struct {
			Status tasks.Status    `json:"status"`
			Result json.RawMessage `json:"result"`
			Error  failure         `json:"error"`
		}
		err := c.REST(ctx, http.MethodGet, tasks.TasksPath+"/"+id, nil, &info)
		switch {
		case err != nil && ctx.Err() != nil:
			return unended(ctx, id, limit)
		case err != nil && broken < 2*Tries && Retriable(Explain(err, "vCenter", "ask for a task")):
			broken++
			continue
		case err != nil:
			return err
		case info.Status == tasks.Failed:
			if len(info.Error.Messages) == 0 {
				return errors.New("the task failed without a reason")
			}
			return &RESTError{Type: info.Error.Type, Text: Sentences(info.Error.Messages)}
		case info.Status == tasks.Succeeded:
			if result == nil || len(info.Result) == 0 {
				return nil
			}
			return json.Unmarshal(info.Result, result)
		}
		broken = 0
	}
}

// errEndless ends the wait for a task that exceeds its limit while vCenter answers.
var errEndless = errors.New("it took too long")

// unended explains why the wait for a task ended. The task continues in vCenter.
func unended(ctx context.Context, id string, limit time.Duration) error {
	if context.Cause(ctx) == errEndless {
		return backends.Unreachablef("", "see the task in vCenter; run rdma-setup resume when it has ended",
			"its task %s is still running in vCenter after %s", id, limit)
	}
	return fmt.Errorf("its task %s is still running in vCenter: %w", id, context.Cause(ctx))
}

// File reads the end of a file of a datastore, at most limit bytes. Path has vCenter's form: "[shared-01] vm-01/vmware.log". It
// requires the privilege Datastore.Browse, and is bounded by the limit of one call.
func (c *Conn) File(ctx context.Context, datacenter, path string, limit int) (string, error) {
	store, file, ok := strings.Cut(strings.TrimPrefix(path, "["), "] ")
	if !ok {
		return "", backends.Permanentf(path, "", "that is not a path of a datastore")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.limitOf("Download"), errSilence)
	defer cancel()
	u := *c.soap.URL()
	u.User, u.Path = nil, "/folder/"+file
	u.RawQuery = url.Values{"dcPath": {datacenter}, "dsName": {store}}.Encode()
	began := time.Now()
	body, _, err := c.soap.Download(ctx, &u, &soap.Download{Method: "GET"})
	if c.cfg.Trace != nil {
		c.cfg.Trace(backends.Call{ID: fmt.Sprintf("%s-%d", c.traceID, c.requests.Add(1)), Method: "GET", Target: backends.Clean(path),
			Started: began, Took: time.Since(began),
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
