package backends_test

import (
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
