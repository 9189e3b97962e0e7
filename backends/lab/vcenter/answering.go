package vcenter

import (
	"fmt"
	"net/http"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

// answering ensures that every call gets an answer. A panic before the method is called, or an answer that cannot be written,
// becomes a SystemError. Only a fault rule can drop the connection.
type answering struct{ next http.Handler }

// ServeHTTP implements http.Handler.
func (a answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	late := &lateWriter{ResponseWriter: w}
	defer func() {
		switch p := recover(); {
		case p == http.ErrAbortHandler:
			panic(p)
		case p != nil && !late.begun:
			writeFault(w, frame.Refuse(&types.SystemError{Reason: fmt.Sprint(p)}))
		case r.Method == http.MethodPost && !late.begun && late.status == http.StatusOK:
			writeFault(w, frame.Refuse(&types.SystemError{Reason: "the answer cannot be written"}))
		case !late.begun && late.status != 0:
			w.WriteHeader(late.status)
		}
	}()
	a.next.ServeHTTP(late, r)
}

// A lateWriter delays the status until the first byte of the body is written.
type lateWriter struct {
	http.ResponseWriter
	status int
	begun  bool
}

// WriteHeader implements http.ResponseWriter.
func (w *lateWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *lateWriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.begun = true
		if w.status != 0 {
			w.ResponseWriter.WriteHeader(w.status)
		}
	}
	return w.ResponseWriter.Write(b)
}
