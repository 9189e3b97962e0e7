package generate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A TopologyDevice is a GPU or an RDMA device: its address in the guest, and its position in the host.
type TopologyDevice struct {
	Address string   // in the guest: 0000:0b:00.0
	GPU     bool     // otherwise a NIC
	Path    []string // bridges of the host above it, nearest first
	NUMA    int      // node of the host
}

// A Topology is what NCCL cannot see in a VM, whose own PCI tree is flat: which GPU and which NIC share a bridge of the host. It
// is written as XML for NCCL_TOPO_FILE (NCCL user guide; NCCL src/graph/xml.cc, ncclTopoGetXmlFromFile; the files in Azure's HPC
// images, ndv4-topo.xml, have the same form).
type Topology struct {
	Devices []TopologyDevice
	Speed   string // of a link, as the kernel writes it: "16.0 GT/s PCIe"
	Width   int
}

var pciAddress = regexp.MustCompile(`^([0-9a-f]{4}|[0-9a-f]{8}):[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
var linkSpeed = regexp.MustCompile(`^\d{1,3}(\.\d)? GT/s( PCIe)?$`)

// Check returns an error for settings that NCCL could not read.
func (t Topology) Check() error {
	gpus, nics, seen := 0, 0, map[string]bool{}
	for _, d := range t.Devices {
		if !pciAddress.MatchString(d.Address) || seen[d.Address] {
			return fmt.Errorf("%q is not a PCI address, or appears twice", d.Address)
		}
		seen[d.Address] = true
		if d.GPU {
			gpus++
		} else {
			nics++
		}
		if len(d.Path) == 0 {
			return fmt.Errorf("the bridges of the host above %s are not known", d.Address)
		}
	}
	switch {
	case gpus == 0 || nics == 0:
		return fmt.Errorf("%d GPUs and %d RDMA devices: a topology joins at least one of each", gpus, nics)
	case !linkSpeed.MatchString(t.Speed):
		return fmt.Errorf("%q is not a PCIe link speed, such as 16.0 GT/s PCIe", t.Speed)
	case !slices.Contains([]int{1, 2, 4, 8, 16, 32}, t.Width):
		return fmt.Errorf("%d is not a PCIe link width", t.Width)
	}
	return nil
}

// A branch is a bridge of the host that at least two devices share, or a device.
type branch struct {
	device *TopologyDevice
	below  []*branch
}

// XML writes the file.
func (t Topology) XML(o Origin) (string, error) {
	if err := t.Check(); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("<!--\n" + strings.ReplaceAll(o.Comment(""), "--", "- -") + "-->\n<system version=\"1\">\n")
	var nodes []int
	for _, d := range t.Devices {
		if !slices.Contains(nodes, d.NUMA) {
			nodes = append(nodes, d.NUMA)
		}
	}
	slices.Sort(nodes)
	bridges := 0
	for i, node := range nodes {
		// NCCL completes missing processor data from the guest itself.
		fmt.Fprintf(&b, "  <cpu numaid=\"%d\">\n", i)
		var here []*TopologyDevice
		for k := range t.Devices {
			if t.Devices[k].NUMA == node {
				here = append(here, &t.Devices[k])
			}
		}
		for _, x := range branches(here, 0) {
			t.write(&b, x, "    ", &bridges)
		}
		b.WriteString("  </cpu>\n")
	}
	b.WriteString("</system>\n")
	return b.String(), nil
}

// branches groups devices by the bridge at a depth from the root; a bridge with a single device below it is left out.
func branches(devices []*TopologyDevice, depth int) []*branch {
	var out []*branch
	groups := map[string][]*TopologyDevice{}
	var order []string
	for _, d := range devices {
		at := len(d.Path) - 1 - depth
		if at < 0 {
			out = append(out, &branch{device: d})
			continue
		}
		name := d.Path[at]
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], d)
	}
	for _, name := range order {
		switch below := branches(groups[name], depth+1); {
		case len(below) == 1:
			out = append(out, below[0])
		default:
			out = append(out, &branch{below: below})
		}
	}
	slices.SortStableFunc(out, func(x, y *branch) int { return cmp.Compare(x.first(), y.first()) })
	return out
}

func (x *branch) first() string {
	if x.device != nil {
		return x.device.Address
	}
	return x.below[0].first()
}

// write assigns a bridge an address that no device of a guest has.
func (t Topology) write(b *strings.Builder, x *branch, indent string, bridges *int) {
	link := fmt.Sprintf("link_speed=%q link_width=\"%d\"", t.Speed, t.Width)
	if d := x.device; d != nil {
		class := "0x020000" // Ethernet controller
		if d.GPU {
			class = "0x030200" // 3D controller
		}
		address := d.Address
		if len(address) > len("0000:0b:00.0") { // nvidia-smi prints eight digits for the domain
			address = address[4:]
		}
		fmt.Fprintf(b, "%s<pci busid=\"%s\" class=\"%s\" %s/>\n", indent, address, class, link)
		return
	}
	*bridges++
	fmt.Fprintf(b, "%s<pci busid=\"ffff:ff:%02x.0\" class=\"0x060400\" %s>\n", indent, *bridges&0xff, link)
	for _, y := range x.below {
		t.write(b, y, indent+"  ", bridges)
	}
	b.WriteString(indent + "</pci>\n")
}
