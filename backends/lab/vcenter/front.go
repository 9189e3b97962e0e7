package vcenter

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/history"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/lifecycle"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/updates"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
)

const maxRequest = 64 << 20

// A front handles every HTTP request before the simulator does. It adds latency, applies fault rules to the connection, ends
// idle sessions and detects that a waiting client has disconnected.
type front struct {
	world   *world.World
	frame   *frame.Frame
	next    http.Handler
	idle    time.Duration
	closing chan struct{}
	once    sync.Once
	watch   *updates.Watch
	history *history.History

	lifecycle *lifecycle.Handler

	mu       sync.Mutex
	sessions map[string]time.Time // time of last use, by cookie
	ended    map[string]bool      // cookies of ended sessions
	waiting  map[types.ManagedObjectReference]<-chan struct{}
}

func newFront(w *world.World, f *frame.Frame, next http.Handler, idle time.Duration) *front {
	return &front{world: w, frame: f, next: next, idle: idle, lifecycle: lifecycle.New(f), closing: make(chan struct{}),
		sessions: map[string]time.Time{},
		ended:    map[string]bool{}, waiting: map[types.ManagedObjectReference]<-chan struct{}{}}
}

func (f *front) close() { f.once.Do(func() { close(f.closing) }) }

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/lab/") {
		f.control(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/folder/") {
		f.folder(w, r)
		return
	}
	if lifecycle.Serves(r.URL.Path) {
		if !f.pause(r, f.world.Timing.Latency) {
			panic(http.ErrAbortHandler)
		}
		f.lifecycle.ServeHTTP(w, r)
		return
	}
	if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/sdk") {
		f.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.session(r)
	method, this := head(body)
	if !f.pause(r, f.world.Timing.Latency) {
		panic(http.ErrAbortHandler)
	}
	if strings.HasPrefix(method, "WaitForUpdates") {
		f.wait(this, r.Context().Done())
		defer f.wait(this, nil)
	}
	f.serve(w, r, method, this)
}

func (f *front) serve(w http.ResponseWriter, r *http.Request, method string, this types.ManagedObjectReference) {
	rule, hit := f.world.Faults.Take(f.frame.Target(this), method, "")
	if !hit {
		f.next.ServeHTTP(w, r)
		return
	}
	t := f.frame.Target(this)
	f.world.Log.Note(world.Event{What: world.FaultApplied, Host: t.Host, VM: t.VM, Detail: rule.Rule})
	switch rule.Do {
	case fault.DoSlow:
		if !f.pause(r, rule.Wait) {
			panic(http.ErrAbortHandler)
		}
		f.next.ServeHTTP(w, r)
	case fault.DoHang:
		f.pause(r, 24*time.Hour)
		panic(http.ErrAbortHandler)
	case fault.DoDrop:
		panic(http.ErrAbortHandler)
	case fault.DoDropAfter:
		f.next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case fault.DoHTTP:
		status, err := strconv.Atoi(rule.Arg)
		if err != nil || status < 400 || status > 599 {
			status = http.StatusServiceUnavailable
		}
		http.Error(w, http.StatusText(status), status)
	case fault.DoGarbage:
		whole := httptest.NewRecorder()
		f.next.ServeHTTP(whole, r)
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		// A client that received half a reply may have disconnected.
		_, _ = w.Write(append(whole.Body.Bytes()[:whole.Body.Len()/2], "\x00<&"...))
	case fault.DoExpire:
		f.expire()
		f.session(r)
		f.next.ServeHTTP(w, r)
	case fault.DoTaskFault, fault.DoTaskCancel:
		err := frame.Named(rule.Arg, "")
		if rule.Do == fault.DoTaskCancel {
			err = frame.Refuse(&types.RequestCanceled{})
		}
		if !strings.HasSuffix(method, "_Task") {
			writeFault(w, err)
			return
		}
		writeTask(w, method, f.frame.FailLater(method, f.frame.Owner(this), err))
	case fault.DoTaskStay:
		writeTask(w, method, f.frame.StayUntil(method, f.frame.Owner(this), f.world.Faults.Cleared()))
	case fault.DoTaskError:
		if !strings.HasSuffix(method, "_Task") {
			writeFault(w, frame.Refuse(&types.SystemError{Reason: rule.Arg}, rule.Arg))
			return
		}
		task := f.frame.FailLater(method, f.frame.Owner(this), frame.Refuse(&types.SystemError{Reason: rule.Arg}, rule.Arg))
		writeTask(w, method, task)
	case fault.DoFault:
		name, text, _ := strings.Cut(rule.Arg, ":")
		err := frame.Named(name, text)
		if p, ok := err.Fault.(*types.NoPermission); ok {
			owner := f.frame.Owner(this)
			p.Object, p.PrivilegeId = &owner, frame.Privilege(method, this)
		}
		writeFault(w, err)
	default:
		f.next.ServeHTTP(w, r)
	}
}

// pause waits. It returns false if the client disconnects or the lab ends before the time has passed.
func (f *front) pause(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-f.closing:
	}
	return false
}

// session removes the cookie of an ended session from a request, so that the request is not authenticated.
func (f *front) session(r *http.Request) {
	c, err := r.Cookie(soap.SessionCookieName)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if last, used := f.sessions[c.Value]; used && now.Sub(last) > f.idle {
		f.ended[c.Value] = true
	}
	if f.ended[c.Value] {
		r.Header.Del("Cookie")
		return
	}
	if _, used := f.sessions[c.Value]; !used {
		f.sweep(now)
	}
	f.sessions[c.Value] = now
}

// sweep removes expired sessions and their watches, because a killed client does not log out. The caller holds the mutex.
func (f *front) sweep(now time.Time) {
	for cookie, last := range f.sessions {
		if now.Sub(last) > f.idle {
			f.ended[cookie] = true
			delete(f.sessions, cookie)
			f.watch.End(cookie)
			f.history.End(cookie)
		}
	}
}

// expire ends all current sessions.
func (f *front) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for cookie := range f.sessions {
		f.ended[cookie] = true
	}
	clear(f.sessions)
}

func (f *front) wait(collector types.ManagedObjectReference, gone <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if gone == nil {
		delete(f.waiting, collector)
		return
	}
	f.waiting[collector] = gone
}

func (f *front) gone(collector types.ManagedObjectReference) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting[collector]
}

// head parses a SOAP request only up to the method and the object.
func head(body []byte) (method string, this types.ManagedObjectReference) {
	d := xml.NewDecoder(bytes.NewReader(body))
	inBody := false
	for {
		token, err := d.Token()
		if err != nil {
			return method, this
		}
		start, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case !inBody:
			inBody = start.Name.Local == "Body"
		case method == "":
			method = start.Name.Local
		default:
			if start.Name.Local != "_this" {
				return method, this
			}
			for _, a := range start.Attr {
				if a.Name.Local == "type" {
					this.Type = a.Value
				}
			}
			if text, err := d.Token(); err == nil {
				if chars, ok := text.(xml.CharData); ok {
					this.Value = strings.TrimSpace(string(chars))
				}
			}
			return method, this
		}
	}
}
