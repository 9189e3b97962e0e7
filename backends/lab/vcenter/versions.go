package vcenter

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
)

// apiVersions are the API versions that a vCenter 9.0 supports, newest first. An older vCenter supports a tail of the list.
// pyVmomi uses the newest version that it also supports, and refuses a server if there is none. Sources: public copies of
// vimServiceVersions.xml of a vCenter 8.0.3 and of a 7.0.3, whose list is a tail of the first; the older names are from pyVmomi
// 6.7.1, the name of 9.0 is from govmomi.
const apiVersions = "9.0.0.0 8.0.3.0 8.0.2.0 8.0.1.0 8.0.0.2 8.0.0.1 8.0.0.0 7.0.3.2 7.0.3.1 7.0.3.0 7.0.2.1 7.0.2.0 7.0.1.1 7.0.1.0 " +
	"7.0.0.2 7.0.0.0 " +
	"6.9.1 6.8.7 6.7.3 6.7.2 6.7.1 6.7 6.5 6.0 5.5 5.1 5.0 4.1 4.0"

// newestAPI returns the newest API version of a vCenter. 6.7 Update 3 has the product version 6.7.0 and the API version 6.7.3.
func newestAPI(vcenter string) string {
	if strings.HasPrefix(vcenter, "6.7") {
		return "6.7.3"
	}
	return vcenter + ".0"
}

// versions serves the file vimServiceVersions.xml of a vCenter.
func versions(vcenter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		newest := newestAPI(vcenter)
		_, older, _ := strings.Cut(apiVersions, newest+" ")
		w.Header().Set("Content-Type", "text/xml")
		_, _ = fmt.Fprintf(w,
			"%s<namespaces version=\"1.0\"><namespace><name>urn:vim25</name><version>%s</version><priorVersions><version>%s</version></priorVersions></namespace></namespaces>\n",
			xml.Header, newest, strings.ReplaceAll(older, " ", "</version><version>"))
	}
}
