package generate_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

func operator(nic generate.NodeNIC) generate.NetworkOperator {
	n := generate.NetworkOperator{NIC: nic, Release: "v26.4.0", PerNode: 16, Namespace: "default"}
	if nic != generate.NodePVRDMA {
		n.Subnet = netip.MustParsePrefix("192.168.60.0/24")
	}
	if nic == generate.NodePassthrough {
		n.Interface, n.MTU = "ens192", 9000
	}
	return n
}

// published compiles a part of the published schemas of operators and device plugins.
func published(t *testing.T, part string) *jsonschema.Schema {
	t.Helper()
	const file = "testdata/operators.schema.json"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(file, doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile(file + "#/$defs/" + part)
}

// holds checks a document, or the JSON text in one of its fields, against a part of the published schemas.
func holds(t *testing.T, part string, v any) error {
	t.Helper()
	if text, ok := v.(string); ok {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		v = doc
	}
	return published(t, part).Validate(v)
}

func documents(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var doc map[string]any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		out[doc["kind"].(string)] = doc
	}
}

// The schemas of the CRDs and of the plugins' configuration accept each kind of node, and the plugin offers the resource that a job
// requests.
func TestNetworkOperatorFitsThePublishedSchemas(t *testing.T) {
	for nic, want := range map[generate.NodeNIC]struct {
		kinds  []string
		plugin string
		path   []any
	}{
		generate.NodePVRDMA:      {[]string{"NicClusterPolicy"}, "rdmaSharedDevicePlugin", []any{"configList", 0}},
		generate.NodePassthrough: {[]string{"NicClusterPolicy", "IPPool", "MacvlanNetwork"}, "rdmaSharedDevicePlugin", []any{"configList", 0}},
		generate.NodeSRIOV:       {[]string{"NicClusterPolicy", "IPPool", "HostDeviceNetwork"}, "sriovDevicePlugin", []any{"resourceList", 0}},
	} {
		text, err := operator(nic).YAML(origin)
		if err != nil {
			t.Fatal(err)
		}
		docs := documents(t, text)
		if len(docs) != len(want.kinds) {
			t.Errorf("%s: %d documents, want %v", nic, len(docs), want.kinds)
		}
		for _, kind := range want.kinds {
			if err := holds(t, kind, docs[kind]); err != nil {
				t.Errorf("%s: %v\n%s", nic, err, text)
			}
		}
		config := at(docs["NicClusterPolicy"], "spec", want.plugin, "config")
		if err := holds(t, want.plugin, config); err != nil {
			t.Errorf("%s: %v\n%s", nic, err, config)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(config.(string)))
		if err != nil {
			t.Fatal(err)
		}
		offered := at(doc, append(want.path, "resourceName")...).(string)
		prefix, ok := at(doc, append(want.path, "resourcePrefix")...).(string)
		if !ok {
			prefix = "rdma"
		}
		resource, network := generate.ResourceOf(nic)
		j := job()
		j.Resource, j.Network = resource, network
		manifest, err := j.YAML(origin)
		if err != nil {
			t.Fatal(err)
		}
		worker := at(parsed(t, manifest), "spec", "mpiReplicaSpecs", "Worker", "template")
		if at(worker, "spec", "containers", 0, "resources", "limits", prefix+"/"+offered) != 1 {
			t.Errorf("%s: the plugin offers %s/%s, the job asks for %s", nic, prefix, offered, resource)
		}
		for kind, doc := range docs {
			if kind == "NicClusterPolicy" {
				continue
			}
			if at(doc, "metadata", "name") != at(worker, "metadata", "annotations", "k8s.v1.cni.cncf.io/networks") {
				t.Errorf("%s: the job asks for the network %v, the %s is called %v", nic, at(worker, "metadata", "annotations"), kind, at(doc, "metadata", "name"))
			}
			if ipam := at(doc, "spec", "ipam"); kind != "IPPool" && holds(t, "ipam", ipam) != nil {
				t.Errorf("%s: ipam %v", nic, ipam)
			}
		}
		if err := holds(t, "NicClusterPolicy", documents(t, strings.Replace(text, "repository:", "registry:", 1))["NicClusterPolicy"]); err == nil {
			t.Error("the schema takes a misspelled field: it cannot fail")
		}
	}
}

func TestNetworkOperatorRefuses(t *testing.T) {
	for name, n := range map[string]func() generate.NetworkOperator{
		"a release whose components have other numbers (24.10)": func() generate.NetworkOperator {
			n := operator(generate.NodeSRIOV)
			n.Release = "v24.10.0"
			return n
		},
		"no release": func() generate.NetworkOperator {
			n := operator(generate.NodeSRIOV)
			n.Release = "v26.4.0\n"
			return n
		},
		"no addresses for pods": func() generate.NetworkOperator {
			n := operator(generate.NodeSRIOV)
			n.Subnet = netip.Prefix{}
			return n
		},
		"more addresses than there are": func() generate.NetworkOperator {
			n := operator(generate.NodeSRIOV)
			n.PerNode = 255
			return n
		},
		"interfaces of pods on PVRDMA": func() generate.NetworkOperator {
			n := operator(generate.NodePVRDMA)
			n.Subnet = netip.MustParsePrefix("192.168.60.0/24")
			return n
		},
		"no interface": func() generate.NetworkOperator {
			n := operator(generate.NodePassthrough)
			n.Interface = ""
			return n
		},
		"an interface that leaves its place": func() generate.NetworkOperator {
			n := operator(generate.NodePassthrough)
			n.Interface = `x"]}`
			return n
		},
		"a node of no kind": func() generate.NetworkOperator { return operator("ib") },
	} {
		if text, err := n().YAML(origin); err == nil || text != "" {
			t.Errorf("%s is taken", name)
		}
	}
}

// NVIDIA GPU Operator, Helm Chart Values Reference; GPUDirect RDMA and GPUDirect Storage; Using NVIDIA vGPU.
func TestGPUOperatorFitsThePublishedValues(t *testing.T) {
	for name, tt := range map[string]struct {
		g    generate.GPUOperator
		want map[string]any // by path
	}{
		"the guests have the driver": {generate.GPUOperator{GPUDirect: true, Toolkit: true}, map[string]any{"driver.enabled": false, "toolkit.enabled": false, "driver.rdma": nil, "mig.strategy": "single"}},
		"the operator's, GPUDirect by DMA-BUF": {generate.GPUOperator{GPUDirect: true, Driver: "nvcr.io/nvidia/driver:580.95.05"},
			map[string]any{"driver.enabled": true, "driver.repository": "nvcr.io/nvidia", "driver.image": "driver", "driver.version": "580.95.05", "driver.rdma": nil, "toolkit": nil}},
		"through nvidia-peermem":      {generate.GPUOperator{GPUDirect: true, OFED: true, Driver: "nvcr.io/nvidia/driver:580.95.05"}, map[string]any{"driver.rdma.enabled": true, "driver.rdma.useHostMofed": true}},
		"vGPUs, which need a licence": {generate.GPUOperator{Driver: "registry.example:5000/vgpu-guest-driver:580.95.05", Secret: "licensing-config"}, map[string]any{"driver.repository": "registry.example:5000", "driver.licensingConfig.secretName": "licensing-config"}},
	} {
		text, err := tt.g.YAML(origin)
		if err != nil {
			t.Fatal(err)
		}
		doc := parsed(t, text)
		if err := holds(t, "values", doc); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		for path, want := range tt.want {
			var keys []any
			for _, k := range strings.Split(path, ".") {
				keys = append(keys, k)
			}
			if got := at(doc, keys...); got != want {
				t.Errorf("%s: %s is %v, want %v", name, path, got, want)
			}
		}
	}
	for name, g := range map[string]generate.GPUOperator{
		"an image without a version":     {Driver: "nvcr.io/nvidia/driver"},
		"a port, which is no version":    {Driver: "registry:5000/driver"},
		"a licence for no driver":        {Secret: "licence"},
		"a secret that leaves its place": {Driver: "a/b:1", Secret: "x\ny"},
		"OFED that nothing uses":         {OFED: true},
	} {
		if text, err := g.YAML(origin); err == nil || text != "" {
			t.Errorf("%s is taken", name)
		}
	}
}
