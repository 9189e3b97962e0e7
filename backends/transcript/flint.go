package transcript

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// FWImage is the output of "flint query" (mstflint) about the firmware on a device or in a file.
type FWImage struct {
	scan.Envelope
	ImageType          *string  `json:"image_type"` // FS2, FS3, FS4
	FWVersion          *string  `json:"fw_version"`
	FWVersionRunning   *string  `json:"fw_version_running,omitempty"` // if the running firmware differs from the one in flash
	FWReleaseDate      *string  `json:"fw_release_date"`              // ISO: 2018-05-14
	ProductVersion     *string  `json:"product_version"`
	ROMs               []ROM    `json:"roms"`
	DeviceID           *int64   `json:"device_id"`
	BaseGUID           *string  `json:"base_guid"`
	BaseGUIDCount      *int64   `json:"base_guid_count"`
	BaseMAC            *string  `json:"base_mac"`
	BaseMACCount       *int64   `json:"base_mac_count"`
	OrigBaseGUID       *string  `json:"orig_base_guid"`
	OrigBaseMAC        *string  `json:"orig_base_mac"`
	GUIDs              []string `json:"guids"` // the columns of FS2 images
	MACs               []string `json:"macs"`
	PSID               *string  `json:"psid"`
	OrigPSID           *string  `json:"orig_psid"`
	ImageVSD           *string  `json:"image_vsd"`
	DeviceVSD          *string  `json:"device_vsd"`
	SecurityAttributes []string `json:"security_attributes"`
}

// ROM is an expansion ROM in the image.
type ROM struct {
	Type    string   `json:"type"` // PXE, UEFI
	Version string   `json:"version"`
	CPU     []string `json:"cpu"`
}

var (
	romInfo   = regexp.MustCompile(`type=(\S+)\s+version=(\S+)(?:\s+(?:devid|proto|dev_id|port)=\S+)*(?:\s+cpu=(\S+))?`)
	flintDate = regexp.MustCompile(`^([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})$`)
)

// Flint reads "flint -d DEVICE query".
func Flint(text string) FWImage {
	i := FWImage{ROMs: []ROM{}, GUIDs: []string{}, MACs: []string{}, SecurityAttributes: []string{}}
	i.Envelope, text = scan.Begin("flint", text)
	for _, m := range romInfo.FindAllStringSubmatch(text, 64) {
		i.ROMs = append(i.ROMs, ROM{Type: m[1], Version: m[2], CPU: list(m[3])})
	}
	for line := range scan.Lines(text) {
		code, words := refusal(line)
		if code == "" && strings.HasPrefix(strings.TrimSpace(line), "-E-") {
			code, words = CodeFailed, line[len(marked.FindString(line)):]
		}
		if code != "" {
			i.Fail(code, words, nil)
		}
	}
	f := scan.Named("Image type", "FW Version", "FW Version(Running)", "FW Release Date", "Product Version", "Rom Info",
		"Device ID", "Description", "Base GUID", "Base GUID1", "Base GUID2", "Orig Base GUID", "Base MAC", "Base MAC1", "Base MAC2",
		"Orig Base MAC", "GUIDs", "MACs", "Orig GUIDs", "Orig MACs", "VSD", "Image VSD", "Device VSD", "PSID", "Orig PSID",
		"Security Attributes", "Security Ver", "Default Update Method", "Life cycle", "Secure Boot", "Running FW Version", "Image Info",
		"Min FW Version", "MIC Version", "ISFU Major", "Encryption", "Chip Revision", "Branch",
	).Record(text)
	i.ImageType, i.FWVersion, i.ProductVersion = f.Str("Image type"), f.Str("FW Version"), f.Str("Product Version")
	i.FWVersionRunning = f.Str("FW Version(Running)")
	i.FWReleaseDate, i.DeviceID = isoDate(f.Value("FW Release Date")), scan.LeadingInt(f.Value("Device ID"))
	guid, count := counted(f, "Base GUID", "Base GUID1")
	i.BaseGUID, i.BaseGUIDCount = scan.GUID(guid), count
	mac, count := counted(f, "Base MAC", "Base MAC1")
	i.BaseMAC, i.BaseMACCount = scan.MAC(mac), count
	guid, _ = counted(f, "Orig Base GUID")
	mac, _ = counted(f, "Orig Base MAC")
	i.OrigBaseGUID, i.OrigBaseMAC = scan.GUID(guid), scan.MAC(mac)
	for _, word := range strings.Fields(f.Value("GUIDs")) {
		if guid := scan.GUID(word); guid != nil {
			i.GUIDs = append(i.GUIDs, *guid)
		}
	}
	for _, word := range strings.Fields(f.Value("MACs")) {
		if mac := scan.MAC(word); mac != nil {
			i.MACs = append(i.MACs, *mac)
		}
	}
	i.PSID, i.OrigPSID = f.Str("PSID"), f.Str("Orig PSID")
	i.ImageVSD, i.DeviceVSD = f.Str("Image VSD"), f.Str("Device VSD")
	i.SecurityAttributes = list(f.Value("Security Attributes"))
	i.NotUnderstood(i.ImageType != nil || i.FWVersion != nil || i.PSID != nil || i.BaseGUID != nil || i.BaseMAC != nil || len(i.ROMs) > 0,
		text)
	return i
}

// counted reads "5059450300a12238 4" of the first label that exists.
func counted(f *scan.Record, labels ...string) (address string, count *int64) {
	for _, label := range labels {
		words := strings.Fields(f.Value(label))
		if len(words) > 1 {
			return words[0], scan.Int(words[1])
		}
		if len(words) == 1 {
			return words[0], nil
		}
	}
	return "", nil
}

// list splits at commas and blanks; N/A is nothing.
func list(s string) []string {
	out := []string{}
	for _, word := range strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' }) {
		if !scan.IsNull(word) {
			out = append(out, word)
		}
	}
	return out
}

// isoDate turns D.M.YYYY into YYYY-MM-DD.
func isoDate(s string) *string {
	m := flintDate.FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	return new(fmt.Sprintf("%s-%02s-%02s", m[3], m[2], m[1]))
}
