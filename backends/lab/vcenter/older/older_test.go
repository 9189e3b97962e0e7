package older_test

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/older"
)

const (
	network = `<x:RetrievePropertiesResponse xmlns:xsi="i"><returnval><propSet><name>config.network</name><val xsi:type="HostNetworkInfo">` +
		`<pnic><key>a</key><rdmaDevice>b</rdmaDevice><mac>c</mac></pnic>LATER<dnsConfig xsi:type="HostDnsConfig"><dhcp>true</dhcp></dnsConfig>` +
		`</val></propSet></returnval></x:RetrievePropertiesResponse>`
	rdma    = `<rdmaDevice><key>d<b>e</b></key></rdmaDevice>`
	content = `<RetrieveServiceContentResponse><returnval><tenantManager>t</tenantManager><rootFolder>r</rootFolder></returnval></RetrieveServiceContentResponse>`
)

func TestTrim(t *testing.T) {
	whole := strings.ReplaceAll(network, "LATER", rdma)
	for _, x := range []struct{ name, version, in, want string }{
		{"HostNetworkInfo.rdmaDevice and PhysicalNic.rdmaDevice came with 7.0", "6.7.1", whole,
			strings.ReplaceAll(strings.ReplaceAll(network, "LATER", ""), "<rdmaDevice>b</rdmaDevice>", "")},
		{"and are there in 7.0", "7.0.0.0", whole, whole},
		{"TenantManager is of 6.9.1", "6.7", content, strings.ReplaceAll(content, "<tenantManager>t</tenantManager>", "")},
		{"AboutInfo.patchLevel, vim:7.0.2.0", "7.0.1.1", `<a xmlns:xsi="i"><val xsi:type="AboutInfo"><patchLevel>1</patchLevel></val></a>`,
			`<a xmlns:xsi="i"><val xsi:type="AboutInfo"></val></a>`},
		{"what has no known type stays", "4.0", `<a><rdmaDevice/></a>`, `<a><rdmaDevice/></a>`},
		{"no XML", "4.0", "<a", "<a"},
	} {
		if got := string(older.Trim([]byte(x.in), x.version)); got != x.want {
			t.Errorf("%s: %s", x.name, got)
		}
	}
}

func wellFormed(text []byte) bool {
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		if _, err := d.Token(); err != nil {
			return err == io.EOF
		}
	}
}

// Well-formed XML is still well-formed after trimming.
func FuzzTrim(f *testing.F) {
	for _, text := range []string{network, content, "<a", "</a>", `<val t:type="HostNetworkInfo"><rdmaDevice></x></rdmaDevice></val>`} {
		f.Add([]byte(text), "6.7.1")
	}
	f.Fuzz(func(t *testing.T, text []byte, version string) {
		if out := older.Trim(text, version); wellFormed(text) && !wellFormed(out) {
			t.Errorf("%q became %q", text, out)
		}
	})
}
