package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
)

// What ends a connection during a request is told apart from an answer: such a read is repeated.
func TestBrokenConnections(t *testing.T) {
	for err, want := range map[error]bool{
		io.EOF:             true,
		syscall.ECONNRESET: true,
		net.ErrClosed:      true, // tls.Conn.Write after the transport's reader has seen the end
		errors.New("http: server closed idle connection"): true,
		&StatusError{Code: http.StatusServiceUnavailable}: false,
		errors.New("x509: certificate has expired"):       false,
	} {
		if got := isBroken(fmt.Errorf("ask: %w", &url.Error{Op: "Post", URL: "https://vc/sdk", Err: err})); got != want {
			t.Errorf("%v: broken %t, want %t", err, got, want)
		}
		for what, unknown := range map[string]bool{"read the health of hosts": false, "set the option": want} {
			if text := Explain(err, "esx-01", what).Error(); strings.Contains(text, unsure) != unknown {
				t.Errorf("%v: %q says that it may have taken effect: %t", err, text, !unknown)
			}
		}
	}
}
