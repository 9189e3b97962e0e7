package appliance

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/vmware/govmomi/nfc"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
)

// TestUploadRefusesPlainHTTP uses leases with an address without TLS, and with a file that the descriptor does not name.
func TestUploadRefusesPlainHTTP(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer s.Close()
	f := &File{Path: "x.ova", references: []string{"disk"}}
	for _, tt := range []struct{ scheme, path string }{{"http", "disk"}, {"https", "../secret"}} {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.Scheme = tt.scheme
		item := nfc.FileItem{OvfFileItem: types.OvfFileItem{Path: tt.path}, URL: u}
		if err := upload(t.Context(), f, item, newMeter(1, nil)); backends.KindOf(err) != backends.KindRefused {
			t.Errorf("%s %s: %v", tt.scheme, tt.path, err)
		}
	}
	if asked > 0 {
		t.Errorf("%d requests were made", asked)
	}
}
