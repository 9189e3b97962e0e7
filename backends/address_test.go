package backends_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// RFC 1035, section 2.3.4: a label has at most 63 octets; a name has at most 255 on the wire, which are 253 characters.
func TestHostNamesOfVCenterFitIntoDNS(t *testing.T) {
	label := strings.Repeat("a", 63)
	for name, good := range map[string]bool{
		label + ".example":                        true,
		label + "a.example":                       false,
		strings.Repeat(label+".", 3) + label[:61]: true,
		strings.Repeat(label+".", 3) + label[:62]: false,
	} {
		if _, err := backends.VCenterAddress(name); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoSecretOfAnAddressIsShown: an error of net/http or net/url, however it is wrapped, and an address in a text show neither a
// path that is a ticket nor a query nor user info. What else they say is kept.
func TestNoSecretOfAnAddressIsShown(t *testing.T) {
	_, refused := http.Get("http://user:geheim@127.0.0.1:1/downloads/geheim/x.tgz?token=geheim")
	_, invalid := url.Parse(strings.Join([]string{"https://user:geheim", "geheim@host"}, "/")) // the slash ends the host
	two := errors.Join(&url.Error{Op: "Get", URL: "https://a/geheim", Err: errors.New("one")},
		fmt.Errorf("b: %w", &url.Error{Op: "Post", URL: "https://b/?geheim", Err: errors.New("two")}))
	for _, err := range []error{refused, invalid, two} {
		if err == nil {
			t.Fatal("no error")
		}
	}
	for text, says := range map[string]string{
		backends.ErrorText(fmt.Errorf("fetch: %w", refused)):                                         "fetch: dial tcp 127.0.0.1:1: ",
		backends.ErrorText(&url.Error{Op: "Get", URL: "https://a/geheim", Err: refused}):             "dial tcp 127.0.0.1:1: ",
		backends.Errorf(backends.KindUnreachable, "esx-01", "", "send: %w", refused).Error():         "esx-01: send: dial tcp",
		(&backends.Error{Target: "esx-01", What: "send", Err: fmt.Errorf("x: %w", refused)}).Error(): "esx-01: send: x: dial tcp",
		backends.ErrorText(invalid):                                    "the address is not valid",
		backends.ErrorText(two):                                        "one\nb: two",
		backends.ShownURL("https://u:geheim/geheim@h/p?geheim#geheim"): "https://h/p",
		backends.ShownURL("vcenter.example"):                           "vcenter.example",
	} {
		if strings.Contains(text, "geheim") || !strings.Contains(text, says) {
			t.Errorf("%q, want %q", text, says)
		}
	}
}
