package nic_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

const image = "/vmfs/volumes/shared-01/fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax-UEFI-14.29.15-FlexBoot-3.6.902.bin"

// TestFirmwareOfCard checks which of the answers' firmware files a card gets once its board is known.
func TestFirmwareOfCard(t *testing.T) {
	half := strings.Replace(image, "16_35_8008", "16_35_8002", 1) // fixes bulletin 5699, but not 5847
	for name, row := range map[string]struct {
		psid, has string
		files     map[string]string
		untrusted bool
		want      string // version, or text of the refusal
	}{
		"older firmware":             {"MT_0000000009", "16.35.4030", map[string]string{"MT_0000000009": image}, true, "16.35.8008"},
		"an older branch":            {"MT_0000000009", "16.28.9999", map[string]string{"MT_0000000009": image}, false, "16.35.8008"},
		"the same":                   {"MT_0000000009", "16.35.8008", map[string]string{"MT_0000000009": image}, true, "16.35.8008"},
		"newer than the file":        {"MT_0000000009", "16.36.1002", map[string]string{"MT_0000000009": image}, true, "16.36.1002"},
		"another board of the maker": {"MT_0000000011", "16.35.4030", map[string]string{"MT_0000000009": image}, false, "16.35.4030"},
		"that, for untrusted VMs": {"MT_0000000011", "16.35.4030", map[string]string{"MT_0000000009": image}, true,
			"PSID MT_0000000011) would have firmware 16.35.4030"},
		"an OEM's board without its file": {"DEL0000000027", "16.26.6000", map[string]string{"MT_0000000009": image}, false,
			"comes from the server's vendor alone"},
		"an OEM's board with its file": {"DEL0000000027", "16.26.6000", map[string]string{"MT_0000000009": image, "DEL0000000027": image}, true,
			"16.35.8008"},
		"a file that is vulnerable too": {"MT_0000000009", "16.35.4030", map[string]string{"MT_0000000009": half}, true, "CVE-2025-33207"},
		"that, for trusted VMs":         {"MT_0000000009", "16.35.4030", map[string]string{"MT_0000000009": half}, false, "16.35.8002"},
	} {
		b := nic.Burn{Files: row.files, Vendor: "15b3", Device: "1017", Untrusted: row.untrusted}
		got, err := b.Resolve("esx-01", "0000:3b:00.0", backends.FirmwareImage{PSID: row.psid, Version: row.has})
		said := got.Version
		if err != nil {
			said = err.Error()
		}
		if version := strings.HasPrefix(row.want, "16."); version && said != row.want ||
			!version && (err == nil || !strings.Contains(said, row.want)) {
			t.Errorf("%s: %s, want %s", name, said, row.want)
		}
		if writes := got.Version != row.has; err == nil && writes != (got.File != "") {
			t.Errorf("%s: written from %q", name, got.File)
		}
	}
}

// TestImagesOfCard checks which files may fit a port's card before its board is known, and which version a file name states.
func TestImagesOfCard(t *testing.T) {
	files := map[string]string{"MT_0000000009": "[shared-01] fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax.bin", "MT_0000000011": image,
		"MT_0000000359": "/vmfs/volumes/a/fw-ConnectX6Dx-rel-22_46_3048-MCX623106AN-CDA_Ax.bin"}
	for _, row := range []struct{ firmware, psid, want string }{
		{"16.35.4030", "", "MT_0000000009 MT_0000000011"},
		{"16.35.4030", "MT_0000000011", "MT_0000000011"},
		{"16.35.4030", "DEL0000000027", ""},
		{"22.38.1002", "", "MT_0000000359"},
		{"", "", "MT_0000000009 MT_0000000011 MT_0000000359"}, // a port in InfiniBand mode
	} {
		got := nic.Images(&backends.NIC{Firmware: row.firmware}, row.psid, files)
		if ids := strings.Join(slices.Sorted(maps.Keys(got)), " "); ids != row.want {
			t.Errorf("%+v: %s", row, ids)
		}
		if file := got["MT_0000000009"]; file != "" && file != "/vmfs/volumes/shared-01/fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax.bin" {
			t.Errorf("%+v: %s", row, file)
		}
	}
	for file, want := range map[string]string{
		"/a/fw-ConnectX4-rel-12_17_2010-00WT039_Ax.bin": "12.17.2010", "/a/fw-ConnectX5-rel-16_35_8008.signed.bin": "", "/a/fw.bin": "",
		"/a/fw-ConnectX5-rel-16_35_8008-MCX556A.zip": "", "/rel-1_2_3/fw.bin": "",
	} {
		if got := nic.ImageVersion(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
