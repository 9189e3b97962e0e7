package vsphere_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

// A certificate that a trusted CA has issued for another machine, for example an ESXi host, is refused for vCenter, also if vCenter
// is named by its address, in which case Go sends no server name.
func TestTheCertificateOfAnotherMachineIsRefused(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		dns     []string
		ips     []net.IP
		refused bool
	}{
		"of a host":        {dns: []string{"esx-01.example.com"}, refused: true},
		"of another one":   {ips: []net.IP{net.IPv4(10, 0, 0, 5)}, refused: true},
		"of this address":  {ips: []net.IP{net.IPv4(127, 0, 0, 1)}},
		"of both of these": {dns: []string{"vcenter.example.com"}, ips: []net.IP{net.IPv4(127, 0, 0, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
				SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "certificate of a test"}, NotAfter: time.Now().Add(time.Hour),
				IsCA: true, BasicConstraintsValid: true, DNSNames: test.dns, IPAddresses: test.ips,
			}, &x509.Certificate{Subject: pkix.Name{CommonName: "certificate of a test"}}, key.Public(), key)
			if err != nil {
				t.Fatal(err)
			}
			var asked atomic.Bool
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Store(true)
				w.WriteHeader(http.StatusNotFound)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
			server.StartTLS()
			defer server.Close()
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = vsphere.Dial(t.Context(), vsphere.Config{URL: strings.TrimSuffix(server.URL, "/") + "/sdk", Username: "admin",
				Password: word("secret-word"), CAFiles: []string{ca}})
			if err == nil || (backends.KindOf(err) == backends.KindAuth) != test.refused || asked.Load() == test.refused {
				t.Errorf("%v, of kind %q; asked: %t", err, backends.KindOf(err), asked.Load())
			}
		})
	}
}
