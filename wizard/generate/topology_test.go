package generate_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// A host like an HGX: each GPU shares a switch with a NIC, and there is a second socket.
func TestTopology(t *testing.T) {
	at := func(address string, gpu bool, numa int, path ...string) generate.TopologyDevice {
		return generate.TopologyDevice{Address: address, GPU: gpu, NUMA: numa, Path: path}
	}
	for name, test := range map[string]struct {
		devices []generate.TopologyDevice
		want    string
	}{
		"one switch": {[]generate.TopologyDevice{at("0000:0b:00.0", true, 0, "down1", "up", "root"), at("0000:13:00.0", false, 0, "down2", "up", "root")}, `  <cpu numaid="0">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:0b:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
      <pci busid="0000:13:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
`},
		"two root ports": {[]generate.TopologyDevice{at("00000000:0b:00.0", true, 0, "root1"), at("0000:13:00.0", false, 0, "root2")}, `  <cpu numaid="0">
    <pci busid="0000:0b:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
    <pci busid="0000:13:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"/>
  </cpu>
`},
		"two sockets, a switch below a switch": {[]generate.TopologyDevice{
			at("0000:0b:00.0", true, 1, "d1", "u2", "d0", "u1", "root"), at("0000:0c:00.0", true, 1, "d2", "u1", "root"),
			at("0000:13:00.0", false, 1, "d3", "u2", "d0", "u1", "root"),
			at("0000:0d:00.0", true, 4, "other")}, `  <cpu numaid="0">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="ffff:ff:02.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
        <pci busid="0000:0b:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
        <pci busid="0000:13:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"/>
      </pci>
      <pci busid="0000:0c:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="0000:0d:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"/>
  </cpu>
`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := generate.Topology{Devices: test.devices, Speed: "16.0 GT/s PCIe", Width: 16}.XML(generate.Origin{Tool: "rdma-setup 1 --lab"})
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := strings.Cut(got, "<system version=\"1\">\n")
			if d := cmp.Diff(test.want+"</system>\n", body); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			var any struct {
				XMLName xml.Name `xml:"system"`
			}
			if err := xml.Unmarshal([]byte(got), &any); err != nil {
				t.Errorf("%v in %s", err, got)
			}
		})
	}
	nic, gpu := at("0000:13:00.0", false, 0, "root"), at("0000:0b:00.0", true, 0, "root")
	for name, bad := range map[string]generate.Topology{
		"no NIC":          {Devices: []generate.TopologyDevice{gpu}, Speed: "16.0 GT/s", Width: 16},
		"one twice":       {Devices: []generate.TopologyDevice{gpu, gpu, nic}, Speed: "16.0 GT/s", Width: 16},
		"no address":      {Devices: []generate.TopologyDevice{gpu, at("x\" y", false, 0, "root")}, Speed: "16.0 GT/s", Width: 16},
		"unknown bridges": {Devices: []generate.TopologyDevice{gpu, at("0000:13:00.0", false, 0)}, Speed: "16.0 GT/s", Width: 16},
		"no speed":        {Devices: []generate.TopologyDevice{gpu, nic}, Speed: "fast\"", Width: 16},
		"no width":        {Devices: []generate.TopologyDevice{gpu, nic}, Speed: "16.0 GT/s", Width: 3},
	} {
		if got, err := bad.XML(generate.Origin{}); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}
