package generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	version "github.com/hashicorp/go-version"
	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A NodeNIC is the type of a Kubernetes node's RDMA adapter in its VM.
type NodeNIC string

// The NICs of nodes.
const (
	NodePVRDMA      NodeNIC = "pvrdma"
	NodeSRIOV       NodeNIC = "sriov"       // a VF, which one pod gets with its network interface
	NodePassthrough NodeNIC = "passthrough" // the complete card, which pods share
)

// The resources that the device plugins of a NetworkOperator offer, as jobs name them. The prefix of the RDMA shared device
// plugin is fixed (k8s-rdma-shared-dev-plugin, pkg/resources/resources_manager.go); the names are those of the makers' examples.
const (
	SharedResource = "rdma/hca_shared_devices_a"
	DeviceResource = "nvidia.com/hostdev"
)

// PodNetwork is the name of the pods' second network, which jobs request in addition to the resource.
const PodNetwork = "rdma-net"

// ResourceOf returns the resource for a kind of node, and the network that belongs to it; "" for none.
func ResourceOf(nic NodeNIC) (resource, network string) {
	switch nic {
	case NodeSRIOV:
		return DeviceResource, PodNetwork
	case NodePassthrough:
		return SharedResource, PodNetwork
	}
	return SharedResource, ""
}

// A NetworkOperator is the configuration of NVIDIA's Network Operator: a NicClusterPolicy with a device plugin, and for adapters
// whose interfaces pods can use, Multus, IPAM and a network (NVIDIA Network Operator 25.7 and 26.4, Quick Start: Host Device
// Network with RDMA; MacVLAN Network with RDMA Shared Device). The guests have their drivers already: none is deployed.
type NetworkOperator struct {
	NIC       NodeNIC
	Release   string       // of the operator, v26.4.0
	Subnet    netip.Prefix // of the pods' second interfaces
	PerNode   int          // number of its addresses per node
	Namespace string       // of the jobs
	Interface string       // of the adapter in the nodes, with NodePassthrough
	MTU       int          // of the pods' second interfaces, with NodePassthrough; 0: that of Interface
}

// oldest is the first release whose components have its version number (Network Operator 25.7, Quick Start); those of 24.10 have
// version numbers of their own.
var oldest = version.Must(version.NewVersion("25.7"))

var release = regexp.MustCompile(`^v\d{2}\.\d{1,2}\.\d{1,2}$`)

// Check returns an error for settings that the operator or the device plugins would refuse.
func (n NetworkOperator) Check() error {
	v, err := version.NewVersion(n.Release)
	switch {
	case n.NIC != NodePVRDMA && n.NIC != NodeSRIOV && n.NIC != NodePassthrough:
		return fmt.Errorf("%q is not an adapter of a node: pvrdma, sriov or passthrough", n.NIC)
	case err != nil || !release.MatchString(n.Release):
		return fmt.Errorf("%q is not a release of the Network Operator: expected one like v26.4.0", n.Release)
	case v.LessThan(oldest):
		return fmt.Errorf("components of release %s have their own versions: expected v%s.0 or later", n.Release, oldest.Original())
	case n.NIC == NodePVRDMA && n.Subnet.IsValid():
		return fmt.Errorf("pods on PVRDMA have no second interface: a port group does not forward to MAC addresses that the VM's adapter does not have")
	case n.NIC == NodePVRDMA:
		return nil
	case !n.Subnet.IsValid() || !n.Subnet.Addr().Is4() || n.Subnet.Masked() != n.Subnet:
		return fmt.Errorf("pods need addresses of their own: expected an IPv4 network like 192.168.60.0/24, not %s", n.Subnet)
	case n.PerNode < 1 || n.Subnet.Bits() < 8 || n.PerNode > 1<<(32-n.Subnet.Bits())-2:
		return fmt.Errorf("%s has no room for %d addresses a node", n.Subnet, n.PerNode)
	case n.MTU != 0 && (n.MTU < 576 || n.MTU > 9216):
		return fmt.Errorf("MTU %d is not between 576 and 9216", n.MTU)
	case !kubeName.MatchString(n.Namespace):
		return fmt.Errorf("%q is not a valid namespace name", n.Namespace)
	case n.NIC == NodePassthrough && !deviceName.MatchString(n.Interface):
		return fmt.Errorf("%q is not a valid name of a network interface", n.Interface)
	}
	return nil
}

type (
	document struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Metadata   metadata `yaml:"metadata"`
		Spec       any      `yaml:"spec"`
	}
	component struct {
		Image      string `yaml:"image"`
		Repository string `yaml:"repository"`
		Version    string `yaml:"version"`
		Config     string `yaml:"config,omitempty"`
	}
	policySpec struct {
		Shared    *component `yaml:"rdmaSharedDevicePlugin,omitempty"`
		Device    *component `yaml:"sriovDevicePlugin,omitempty"`
		IPAM      *component `yaml:"nvIpam,omitempty"`
		Secondary *secondary `yaml:"secondaryNetwork,omitempty"`
	}
	secondary struct {
		Plugins component `yaml:"cniPlugins"`
		Multus  component `yaml:"multus"`
	}
	poolSpec struct {
		Subnet  string `yaml:"subnet"`
		PerNode int    `yaml:"perNodeBlockSize"`
	}
	networkSpec struct {
		Namespace string `yaml:"networkNamespace"`
		Resource  string `yaml:"resourceName,omitempty"` // of a HostDeviceNetwork
		Master    string `yaml:"master,omitempty"`       // these of a MacvlanNetwork
		Mode      string `yaml:"mode,omitempty"`
		MTU       int    `yaml:"mtu,omitempty"`
		IPAM      string `yaml:"ipam"`
	}
)

// YAML writes the objects, one document each.
func (n NetworkOperator) YAML(o Origin) (string, error) {
	if err := n.Check(); err != nil {
		return "", err
	}
	return writeYAML(o, n.advice(), n.objects()...)
}

// writeYAML writes objects as documents of their own, after comments with the origin and advice.
func writeYAML[T any](o Origin, advice []string, objects ...T) (string, error) {
	var b bytes.Buffer
	b.WriteString(o.Comment("#"))
	for _, line := range advice {
		b.WriteString("# " + Plain(line) + "\n")
	}
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	for _, d := range objects {
		if err := enc.Encode(d); err != nil {
			return "", err
		}
	}
	return b.String(), enc.Close()
}

func (n NetworkOperator) advice() []string {
	resource, network := ResourceOf(n.NIC)
	job := "rdma-setup generate mpijob --rdma-resource " + resource
	if network != "" {
		job += " --network " + network
	}
	lines := []string{
		"First: helm install network-operator nvidia/network-operator -n nvidia-network-operator --create-namespace --version " + n.Release,
		"Then: kubectl apply -f FILE; rdma-setup check --kube CONTEXT tells when the nodes have " + resource + ". Jobs: " + job,
		"No driver is deployed: the guests have theirs. Nobody has tried this file on a cluster [unverified].",
	}
	if n.NIC == NodePVRDMA {
		lines = append(lines, "The plugin finds the RDMA function by its driver, for that function has no network interface; no document of the makers names PVRDMA [unverified].")
	}
	return lines
}

func (n NetworkOperator) objects() []document {
	resource, network := ResourceOf(n.NIC)
	prefix, name, _ := strings.Cut(resource, "/")
	of := func(image string) component {
		return component{Image: image, Repository: "nvcr.io/nvidia/mellanox", Version: "network-operator-" + n.Release}
	}
	plugin := func(image string, config any) *component {
		c := of(image)
		if text, err := json.MarshalIndent(config, "", "  "); err == nil { // maps of strings and numbers can always be encoded
			c.Config = string(text) + "\n"
		}
		return &c
	}
	var policy policySpec
	shared := func(selectors map[string][]string) {
		policy.Shared = plugin("k8s-rdma-shared-dev-plugin",
			map[string]any{"configList": []any{map[string]any{"resourceName": name, "rdmaHcaMax": 63, "selectors": selectors}}})
	}
	pod := networkSpec{Namespace: n.Namespace, IPAM: fmt.Sprintf("{\"type\": \"nv-ipam\", \"poolName\": %q}\n", network)}
	kind := "MacvlanNetwork"
	switch n.NIC {
	case NodePVRDMA:
		shared(map[string][]string{"drivers": {backends.PVRDMAModule}})
	case NodePassthrough:
		shared(map[string][]string{"ifNames": {n.Interface}})
		pod.Master, pod.Mode, pod.MTU = n.Interface, "bridge", n.MTU
	case NodeSRIOV:
		policy.Device = plugin("sriov-network-device-plugin", map[string]any{"resourceList": []any{map[string]any{
			"resourcePrefix": prefix, "resourceName": name, "selectors": map[string]any{"vendors": []string{"15b3"}, "isRdma": true}}}})
		kind, pod.Resource = "HostDeviceNetwork", name
	}
	out := []document{{APIVersion: "mellanox.com/v1alpha1", Kind: "NicClusterPolicy", Metadata: metadata{Name: "nic-cluster-policy"}}}
	if network != "" {
		ipam := of("nvidia-k8s-ipam")
		policy.IPAM, policy.Secondary = &ipam, &secondary{Plugins: of("plugins"), Multus: of("multus-cni")}
		out = append(out,
			document{APIVersion: "nv-ipam.nvidia.com/v1alpha1", Kind: "IPPool", Metadata: metadata{Name: network, Namespace: "nvidia-network-operator"},
				Spec: poolSpec{Subnet: n.Subnet.String(), PerNode: n.PerNode}},
			document{APIVersion: "mellanox.com/v1alpha1", Kind: kind, Metadata: metadata{Name: network}, Spec: pod})
	}
	out[0].Spec = policy
	return out
}
