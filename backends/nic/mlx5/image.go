package mlx5

import (
	"path"
	"regexp"
)

// release matches the version after "rel" in the name of a firmware file:
// fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax-UEFI-14.29.15.bin. Files of server vendors use the same form: IBM's
// fw-ConnectX4-rel-12_17_2010-00WT039_Ax.bin, HPE's fw-ConnectX3Pro-rel-2_42_5700-764285-B21_Ax.
var release = regexp.MustCompile(`(?i)-rel-([0-9]+)_([0-9]+)_([0-9]+)(?:-.*)?\.bin$`)

// imageVersion returns the firmware version in a file name, such as 16.35.8008; "" if there is none.
func imageVersion(file string) string {
	m := release.FindStringSubmatch(path.Base(file))
	if m == nil {
		return ""
	}
	return m[1] + "." + m[2] + "." + m[3]
}
