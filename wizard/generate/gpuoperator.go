package generate

import (
	"fmt"
	"strings"
)

// A GPUOperator contains the values of NVIDIA GPU Operator's Helm chart that differ from the defaults (NVIDIA GPU Operator, Helm
// Chart Values Reference; GPUDirect RDMA and GPUDirect Storage).
type GPUOperator struct {
	Driver    string // image of a driver that the operator deploys, REPOSITORY/driver:VERSION; "": the guests have a driver
	GPUDirect bool   // RDMA to and from GPU memory
	OFED      bool   // the guests have MLNX_OFED or DOCA-OFED, whose modules nvidia-peermem needs
	Secret    string // secret with client_configuration_token.tok and gridd.conf of the vGPU license; "": no vGPU
	Toolkit   bool   // the guests have the container toolkit already
}

type (
	gpuValues struct {
		Driver  gpuDriver `yaml:"driver"`
		Toolkit *enabled  `yaml:"toolkit,omitempty"`
		MIG     *strategy `yaml:"mig,omitempty"`
	}
	gpuDriver struct {
		Enabled    bool     `yaml:"enabled"`
		Repository string   `yaml:"repository,omitempty"`
		Image      string   `yaml:"image,omitempty"`
		Version    string   `yaml:"version,omitempty"`
		RDMA       *gpuRDMA `yaml:"rdma,omitempty"`
		Licence    *licence `yaml:"licensingConfig,omitempty"`
	}
	gpuRDMA struct {
		Enabled  bool `yaml:"enabled"`
		HostOFED bool `yaml:"useHostMofed"`
	}
	licence struct {
		Secret string `yaml:"secretName"`
	}
	enabled struct {
		Enabled bool `yaml:"enabled"`
	}
	strategy struct {
		Strategy string `yaml:"strategy"`
	}
)

// Check returns an error for settings that the chart does not support.
func (g GPUOperator) Check() error {
	tagged := strings.LastIndexByte(g.Driver, ':') > strings.LastIndexByte(g.Driver, '/')
	switch {
	case g.Driver != "" && (!image.MatchString(g.Driver) || !tagged || !strings.Contains(g.Driver, "/") || strings.Contains(g.Driver, "@")):
		return fmt.Errorf("%q is not an image of a driver: expected REPOSITORY/NAME:VERSION", g.Driver)
	case g.Secret != "" && !kubeName.MatchString(g.Secret):
		return fmt.Errorf("%q is not a valid secret name", g.Secret)
	case g.Secret != "" && g.Driver == "":
		return fmt.Errorf("a licence is for a driver that the operator deploys: name its image, or license the guests")
	case g.OFED && !(g.GPUDirect && g.Driver != ""):
		return fmt.Errorf("MLNX_OFED in the guests counts only for GPUDirect RDMA with a driver that the operator deploys")
	}
	return nil
}

// YAML writes the values.
func (g GPUOperator) YAML(o Origin) (string, error) {
	if err := g.Check(); err != nil {
		return "", err
	}
	// Jobs request only one kind of resource, nvidia.com/gpu.
	v := gpuValues{Driver: gpuDriver{Enabled: g.Driver != ""}, MIG: &strategy{"single"}}
	if g.Toolkit {
		v.Toolkit = &enabled{}
	}
	if g.Driver != "" {
		at, tag := strings.LastIndexByte(g.Driver, '/'), strings.LastIndexByte(g.Driver, ':')
		v.Driver.Repository, v.Driver.Image, v.Driver.Version = g.Driver[:at], g.Driver[at+1:tag], g.Driver[tag+1:]
		if g.Secret != "" {
			v.Driver.Licence = &licence{g.Secret}
		}
		if g.GPUDirect && g.OFED {
			v.Driver.RDMA = &gpuRDMA{Enabled: true, HostOFED: true}
		}
	}
	return writeYAML(o, g.advice(), v)
}

func (g GPUOperator) advice() []string {
	lines := []string{
		"Install: helm install gpu-operator nvidia/gpu-operator -n gpu-operator --create-namespace -f FILE",
		"Jobs ask for " + gpuResource + ". Nobody has tried this file on a cluster [unverified].",
	}
	if g.Secret != "" {
		lines = append(lines, "First: kubectl create secret generic "+g.Secret+" -n gpu-operator --from-file=gridd.conf --from-file=client_configuration_token.tok")
	}
	switch {
	case !g.GPUDirect:
	case g.OFED:
		lines = append(lines, "GPUDirect RDMA goes through nvidia-peermem, with the modules of the guests' MLNX_OFED.")
	case g.Driver != "":
		lines = append(lines, "GPUDirect RDMA goes through DMA-BUF: it needs Linux 5.12, CUDA 11.7 and the open kernel modules of the driver.")
	default:
		lines = append(lines, "GPUDirect RDMA goes through what the guests have: DMA-BUF, or the module nvidia_peermem.")
	}
	return lines
}
