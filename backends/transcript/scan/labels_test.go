package scan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

func TestLabels(t *testing.T) {
	labels := scan.Named("Name", "Driver", "Driver Info", "Bus Info", "Firmware Version", "Version", "Message")
	for _, c := range []struct{ name, in, want string }{
		{"one on a line", "Name: vmnic4\n  Driver: nmlx5_core", "[Name=vmnic4][Driver=nmlx5_core]"},
		{"one long line, longest name wins", "Driver Info: Bus Info: 0000:3b:00:1 Driver: x Firmware Version: 16.1 Version: 4.1",
			"[Driver Info=][Bus Info=0000:3b:00:1][Driver=x][Firmware Version=16.1][Version=4.1]"},
		{"wrapped value", "Message: one\ntwo\nName:", "[Message=one][=two][Name=]"},
		{"no blank behind the colon", "Name:vmnic4", "[Name=vmnic4]"},
		{"blanks before the colon, tabs, case", "\tfirmware  version \t: 1.2", "[Firmware Version=1.2]"},
		{"unknown name", "Cable: DA\nName: a", "[?Cable: DA][Name=a]"},
		{"name inside a word", "Filename: a", "[?Filename: a]"},
		{"head on the same line", "vm one Name: a", "[=vm one][Name=a]"},
		{"rule and gap", "----\n...\nName: a", "[=][=][Name=a]"},
		{"empty value before the next", "Name: Driver: b", "[Name=][Driver=b]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for f := range labels.Fields(c.in) {
				if f.Unknown {
					b.WriteString("[?" + f.Text + "]")
					continue
				}
				fmt.Fprintf(&b, "[%s=%s]", f.Label, f.Text)
			}
			if b.String() != c.want {
				t.Errorf("got  %s\nwant %s", b.String(), c.want)
			}
		})
	}
}
