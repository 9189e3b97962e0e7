package generate

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// An API is a version of the MPI operator's job API.
type API string

// The versions: the current one, and that of the guide (RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA,
// NVIDIA/Mellanox, 2019).
const (
	V2Beta1  API = "v2beta1"
	V1Alpha2 API = "v1alpha2"
)

// gpuResource is the name of GPUs and vGPUs in NVIDIA's device plugin.
const gpuResource = "nvidia.com/gpu"

// A Job is an MPIJob for the Kubernetes MPI operator: one launcher, and workers with GPUs and RDMA.
type Job struct {
	API       API
	Name      string
	Namespace string // "": the context's
	Image     string
	Workers   int
	GPUs      int // for each worker
	Slots     int // MPI ranks for each worker; 0: one for each GPU
	Spread    bool
	Resource  string   // resource of an RDMA device plugin; "": /dev/infiniband of the node
	Network   string   // second network of the workers, [NAMESPACE/]NAME of Multus; "": none
	Command   []string // what mpirun starts; nil: the guide's benchmark
	Batches   int      // of that benchmark; 0: 100
	Net       NCCL
	NoWait    bool // the operator does not support launcherCreationPolicy (kubeflow/mpi-operator, pull request 484)
}

// benchmark is the command of the guide (RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA, NVIDIA/Mellanox,
// 2019, MPIJob; the file name is restored).
func benchmark(batches int) []string {
	return []string{"python", "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py", "--model=resnet50", "--batch_size=32",
		"--variable_update=horovod", "--use_fp16", "--xla=True", "--num_batches=" + strconv.Itoa(batches)}
}

var (
	multus   = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	kubeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`) // the operator adds -launcher, -worker-0
	resource = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	image    = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._:/-]{0,254}(@sha256:[0-9a-f]{64})?$`)
)

// Check returns an error for settings that Kubernetes would refuse.
func (j Job) Check() error {
	switch {
	case j.API != V2Beta1 && j.API != V1Alpha2:
		return fmt.Errorf("%q is not a version of MPIJob: v2beta1 or v1alpha2", j.API)
	case !kubeName.MatchString(j.Name):
		return fmt.Errorf("%q is not a valid job name: lower-case letters, digits and hyphens, 40 at most", j.Name)
	case j.Namespace != "" && !kubeName.MatchString(j.Namespace):
		return fmt.Errorf("%q is not a valid namespace name", j.Namespace)
	case !image.MatchString(j.Image):
		return fmt.Errorf("%q is not a container image", j.Image)
	case j.Workers < 1 || j.Workers > 1000 || j.GPUs < 0 || j.GPUs > 16 || j.Slots < 0 || j.Slots > 256:
		return fmt.Errorf("%d workers with %d GPUs and %d slots each: expected 1 to 1000, 0 to 16 and up to 256", j.Workers, j.GPUs, j.Slots)
	case j.Batches < 0:
		return fmt.Errorf("%d batches cannot be run", j.Batches)
	case j.Resource != "" && !resource.MatchString(j.Resource):
		return fmt.Errorf("%q is not a resource of a device plugin: expected one like rdma/hca_shared_devices_a", j.Resource)
	case j.Network != "" && !multus.MatchString(j.Network):
		return fmt.Errorf("%q is not a valid network name: expected NAME or NAMESPACE/NAME of a NetworkAttachmentDefinition", j.Network)
	case j.Resource != "" && j.Net.Path == TCP:
		return fmt.Errorf("a job over TCP needs no %s", j.Resource)
	}
	return j.Net.Check()
}

// YAML writes the job.
func (j Job) YAML(o Origin) (string, error) {
	if err := j.Check(); err != nil {
		return "", err
	}
	var b bytes.Buffer
	b.WriteString(o.Comment("#"))
	for _, line := range j.advice() {
		b.WriteString("# " + Plain(line) + "\n")
	}
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(j.object()); err != nil {
		return "", err
	}
	return b.String(), enc.Close()
}

// advice returns what the file itself cannot do.
func (j Job) advice() []string {
	at := ""
	if j.Namespace != "" {
		at = " -n " + j.Namespace
	}
	role := "training.kubeflow.org/job-name=" + j.Name + ",training.kubeflow.org/job-role=launcher"
	if j.API == V1Alpha2 {
		role = "mpi_job_name=" + j.Name + ",mpi_role_type=launcher"
	}
	transport, proof := j.Net.proof()
	lines := []string{
		"Ask the cluster before you create it: kubectl apply" + at + " --dry-run=server -f FILE",
		"Follow it: kubectl logs" + at + " -f -l " + role + " | grep -E '" + proof + "'   must show a line: " + transport,
	}
	if j.API == V2Beta1 {
		lines = append(lines, "The operator of v2beta1 reaches workers by ssh: the image needs sshd. Operators before 2021 want --api v1alpha2.")
	}
	switch {
	case j.Net.Path == TCP:
	case j.Resource == "":
		lines = append(lines,
			"Workers see the node's own /dev/infiniband, which needs privileged pods. With an RDMA device plugin: --rdma-resource.")
	default:
		lines = append(lines,
			"The RDMA device plugin gives "+j.Resource+". IPC_LOCK lets the pods lock memory beyond the runtime's memlock limit.")
	}
	if j.Net.Path == PVRDMA {
		lines = append(lines,
			"The image needs the distribution's rdma-core: MLNX_OFED has no vmw_pvrdma provider (rdma-setup generate dockerfile).")
	}
	return lines
}

// mpirun returns the launcher's command: the guide's arguments in its order.
func (j Job) mpirun() []string {
	args := []string{"mpirun", "--allow-run-as-root", "-np", strconv.Itoa(j.Workers * j.slots()), "-bind-to", "none", "-map-by", "slot"}
	for _, v := range j.Net.Variables(j.API == V1Alpha2) {
		args = append(args, "-x", v.Name+"="+v.Value)
	}
	command := j.Command
	if len(command) == 0 {
		command = benchmark(cmp.Or(j.Batches, 100))
		args = append(args, "-x", "HOROVOD_MPI_THREADS_DISABLE=1")
	}
	args = append(args, "-x", "LD_LIBRARY_PATH", "-x", "PATH", "-mca", "pml", "ob1", "-mca", "btl", "^openib")
	for _, a := range command {
		args = append(args, strings.ReplaceAll(a, "$(", "$$(")) // Kubernetes expands $(NAME)
	}
	return args
}

func (j Job) slots() int { return cmp.Or(j.Slots, max(1, j.GPUs)) }
