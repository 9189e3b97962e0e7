package generate_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

var origin = generate.Origin{Tool: "rdma-setup 1.0", What: "generate x", From: []string{"answers.yaml"},
	Made: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}

func job() generate.Job {
	return generate.Job{
		API: generate.V2Beta1, Name: "tensorflow-benchmarks", Image: "mpioperator/tensorflow-benchmarks:latest", Workers: 4, GPUs: 1,
		Spread: true,
		Net:    generate.NCCL{Path: generate.PVRDMA, Device: "rocep19s0f1", GID: -1},
	}
}

// jobs are all variants of jobs.
func jobs() map[string]generate.Job {
	out := map[string]generate.Job{}
	for name, change := range map[string]func(*generate.Job){
		"pvrdma":    func(*generate.Job) {},
		"tcp":       func(j *generate.Job) { j.Net = generate.NCCL{Path: generate.TCP, Interface: "ens192"} },
		"gpudirect": func(j *generate.Job) { j.Net = generate.NCCL{Path: generate.GPUDirect, GID: 3, Class: 106}; j.GPUs = 8 },
		"device plugin": func(j *generate.Job) {
			j.Resource, j.Namespace, j.Network = "rdma/hca_shared_devices_a", "ml", "rdma-net"
		},
		"no GPU": func(j *generate.Job) { j.GPUs, j.Slots, j.Spread = 0, 2, false },
	} {
		for _, api := range []generate.API{generate.V2Beta1, generate.V1Alpha2} {
			j := job()
			j.API = api
			change(&j)
			out[string(api)+" "+name] = j
		}
	}
	return out
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if err := dec.Decode(new(any)); err == nil {
		t.Fatal("there is a second document")
	}
	return doc
}

// at follows keys and indexes.
func at(v any, path ...any) any {
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

// The published schema of the operator accepts every variant (v2beta1: mpi-operator v0.6.0; v1alpha2 has a few rules of its own,
// and the same pod template).
func TestJobsFitThePublishedSchema(t *testing.T) {
	v2 := schema(t, "testdata/mpijob-v2beta1.schema.json")
	v1 := schema(t, "testdata/mpijob-v1alpha2.schema.json")
	for name, j := range jobs() {
		text, err := j.YAML(origin)
		testclass.OK(t, err)
		doc := parsed(t, text)
		if j.API == generate.V1Alpha2 {
			if err := v1.Validate(doc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			spec := at(doc, "spec").(map[string]any)
			spec["runPolicy"] = map[string]any{"cleanPodPolicy": spec["cleanPodPolicy"]}
			delete(spec, "cleanPodPolicy")
		}
		if err := v2.Validate(doc); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	bad, _ := job().YAML(origin)
	if err := v2.Validate(parsed(t, strings.Replace(bad, "mountPath:", "mountpath:", 1))); err == nil {
		t.Error("the schema takes a misspelled field: it cannot fail")
	}
}

// The schema of release 0.4 has no launcherCreationPolicy (kubeflow/mpi-operator, pull request 484).
func TestJobWithoutWaitingFitsRelease04(t *testing.T) {
	v04 := schema(t, "testdata/mpijob-v2beta1.schema.json", "launcherCreationPolicy")
	for _, noWait := range []bool{true, false} {
		j := job()
		j.NoWait = noWait
		text, err := j.YAML(origin)
		testclass.OK(t, err)
		if err := v04.Validate(parsed(t, text)); (err == nil) != noWait {
			t.Errorf("no wait %v: %v", noWait, err)
		}
	}
}

// schema compiles a published schema, without fields of its spec that a release does not have.
func schema(t *testing.T, file string, without ...string) *jsonschema.Schema {
	t.Helper()
	b, err := os.ReadFile(file)
	testclass.OK(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	testclass.OK(t, err)
	for _, field := range without {
		delete(at(doc, "properties", "spec", "properties").(map[string]any), field)
	}
	c := jsonschema.NewCompiler()
	testclass.OK(t, c.AddResource(file, doc))
	return c.MustCompile(file)
}

// The launcher's arguments are those of the guide, in its order (RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and
// PVRDMA, NVIDIA/Mellanox, 2019, MPIJob).
func TestLauncherHasTheGuidesArguments(t *testing.T) {
	j := job()
	j.API, j.Net.Device, j.Command = generate.V1Alpha2, "", nil
	text, err := j.YAML(origin)
	testclass.OK(t, err)
	want := strings.Fields(`mpirun --allow-run-as-root -np 4 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x NCCL_IB_DISABLE=0
		-x NCCL_IB_GDR_LEVEL=0 -x HOROVOD_MPI_THREADS_DISABLE=1 -x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl ^openib
		python scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py --model=resnet50 --batch_size=32 --variable_update=horovod --use_fp16 --xla=True --num_batches=100`)
	var got []string
	for _, a := range at(parsed(t, text), "spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "containers", 0, "command").([]any) {
		got = append(got, a.(string))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestVariables(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    generate.NCCL
		old  bool
		want string
	}{
		{"PVRDMA has no path to the GPU (RDG Kubernetes with vGPU and PVRDMA)", generate.NCCL{Path: generate.PVRDMA, GID: -1}, false,
			"NCCL_DEBUG=INFO NCCL_IB_DISABLE=0 NCCL_NET_GDR_LEVEL=LOC"},
		{"the former names", generate.NCCL{Path: generate.PVRDMA, GID: 1, Device: "rocep19s0f1"}, true,
			"NCCL_DEBUG=INFO NCCL_IB_DISABLE=0 NCCL_IB_GDR_LEVEL=0 NCCL_IB_HCA=rocep19s0f1 NCCL_IB_GID_INDEX=1"},
		{"GPUDirect", generate.NCCL{Path: generate.GPUDirect, Device: "mlx5_0", GID: 3, Class: 106, Interface: "ens192"}, false,
			"NCCL_DEBUG=INFO NCCL_IB_DISABLE=0 NCCL_NET_GDR_LEVEL=PHB NCCL_IB_HCA==mlx5_0 NCCL_IB_GID_INDEX=3 NCCL_IB_TC=106 " +
				"NCCL_SOCKET_IFNAME==ens192"},
		{"GID 0 is an index", generate.NCCL{Path: generate.SRIOV}, false,
			"NCCL_DEBUG=INFO NCCL_IB_DISABLE=0 NCCL_NET_GDR_LEVEL=LOC NCCL_IB_GID_INDEX=0"},
		{"TCP", generate.NCCL{Path: generate.TCP, Device: "mlx5_0", GID: 3, Class: 106}, false, "NCCL_DEBUG=INFO NCCL_IB_DISABLE=1"},
	} {
		var got []string
		for _, v := range tt.n.Variables(tt.old) {
			got = append(got, v.Name+"="+v.Value)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %s", tt.name, strings.Join(got, " "))
		}
	}
}

// Workers get the RDMA devices in one way, and only if they need them.
func TestWorkersReachTheDevices(t *testing.T) {
	for name, want := range map[string]struct {
		privileged, plugin, host bool
	}{"v2beta1 pvrdma": {true, false, true}, "v2beta1 tcp": {}, "v1alpha2 device plugin": {false, true, false}} {
		text, err := jobs()[name].YAML(origin)
		testclass.OK(t, err)
		spec := at(parsed(t, text), "spec", "mpiReplicaSpecs", "Worker", "template", "spec")
		c := at(spec, "containers", 0)
		if at(c, "securityContext", "privileged") == true != want.privileged {
			t.Errorf("%s: privileged %v", name, at(c, "securityContext"))
		}
		if at(c, "resources", "limits", "rdma/hca_shared_devices_a") == 1 != want.plugin {
			t.Errorf("%s: limits %v", name, at(c, "resources"))
		}
		if at(spec, "volumes", 1, "hostPath", "path") == "/dev/infiniband" != want.host ||
			at(c, "volumeMounts", 1, "mountPath") == "/dev/infiniband" != want.host {
			t.Errorf("%s: volumes %v", name, at(spec, "volumes"))
		}
		if rdma := want.plugin || want.host; at(c, "securityContext", "capabilities", "add", 0) == "IPC_LOCK" != rdma {
			t.Errorf("%s: %v cannot lock memory", name, at(c, "securityContext"))
		}
	}
}

// The operator's command is passed on unchanged, and Kubernetes expands nothing in it.
func TestHostileCommand(t *testing.T) {
	evil := []string{"sh", "-c", "echo \"$(HOME)\" '# not a comment': {x: [y\n---\nkind: Pod", "yes", "0123", "\u202e\x00\x1b"}
	j := job()
	j.Command = evil
	o := origin
	o.From = []string{"x\nkind: Pod"}
	text, err := j.YAML(o)
	testclass.OK(t, err)
	doc := parsed(t, text)
	if doc["kind"] != "MPIJob" {
		t.Errorf("kind %v", doc["kind"])
	}
	args := at(doc, "spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "containers", 0, "command").([]any)
	for i, a := range args[len(args)-len(evil):] {
		if a != strings.ReplaceAll(evil[i], "$(", "$$(") {
			t.Errorf("%q arrives as %q", evil[i], a)
		}
	}
}

func TestRefusedJobs(t *testing.T) {
	for name, change := range map[string]func(*generate.Job){
		"a name with a newline":            func(j *generate.Job) { j.Name = "a\nb" },
		"a name in capitals":               func(j *generate.Job) { j.Name = "Bench" },
		"a namespace with a quote":         func(j *generate.Job) { j.Namespace = `a"b` },
		"an image with a space":            func(j *generate.Job) { j.Image = "a b" },
		"no image":                         func(j *generate.Job) { j.Image = "" },
		"no workers":                       func(j *generate.Job) { j.Workers = 0 },
		"an API of nobody":                 func(j *generate.Job) { j.API = "v3" },
		"a device that is a command":       func(j *generate.Job) { j.Net.Device = "mlx5_0;id" },
		"an interface that is a command":   func(j *generate.Job) { j.Net.Interface = "$(id)" },
		"a resource without a domain":      func(j *generate.Job) { j.Resource = "hca" },
		"a resource for TCP":               func(j *generate.Job) { j.Net.Path, j.Resource = generate.TCP, "rdma/x" },
		"a traffic class of nine bits":     func(j *generate.Job) { j.Net.Class = 256 },
		"a way to move data of no kind":    func(j *generate.Job) { j.Net.Path = "ib" },
		"a GID index below that of nobody": func(j *generate.Job) { j.Net.GID = -2 },
	} {
		j := job()
		change(&j)
		if text, err := j.YAML(origin); err == nil || text != "" {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	for name, j := range jobs() {
		a, _ := j.YAML(origin)
		b, _ := j.YAML(origin)
		if a != b || !strings.HasPrefix(a, "# Made by rdma-setup 1.0, generate x, 2026-03-04T05:06:07Z\n# From: answers.yaml\n") {
			t.Errorf("%s:\n%s", name, a)
		}
	}
}
