package containers

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// A Setup is a script that installs and uninstalls Docker's engine and the NVIDIA container toolkit from their makers'
// repositories (Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7,
// NVIDIA/Mellanox, Docker and nvidia-docker; RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA,
// NVIDIA/Mellanox, 2019, container toolkit). The guides use apt-key, which was removed; the script stores each key in a keyring
// for its own repository and compares Docker's with the fingerprint in the guide.
type Setup struct {
	Distribution  bool // Docker of the distribution (docker.io of Debian and Ubuntu), from the guest's configured repositories
	NVIDIA        bool // the container toolkit too
	RemoveOld     bool // another Docker than the requested one is removed; its images and containers stay in /var/lib/docker
	RemoveNVIDIA1 bool // nvidia-docker 1 is removed, with every container that uses its volumes
}

// DockerKey is the fingerprint of Docker's key for apt (Reference Deployment Guide for RoCE accelerated HPC or ML
// applications with GPUDirect RDMA on vSphere 6.7, NVIDIA/Mellanox, without its spaces).
const DockerKey = "9DC858229FC7DD38854AE2D88D81803C0EBFCD88"

// Script writes a POSIX shell script. It supports apt and dnf, and detects which one exists when it runs.
func (d Setup) Script(o generate.Origin) string {
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return "no"
	}
	engine := "docker-ce"
	if d.Distribution {
		engine = "distribution"
	}
	return "#!/bin/sh\n" + o.Comment("#") + strings.NewReplacer(
		"@ENGINE@", engine, "@NVIDIA@", yes(d.NVIDIA), "@REMOVE_OLD@", yes(d.RemoveOld), "@REMOVE_NVIDIA1@", yes(d.RemoveNVIDIA1), "@KEY@", DockerKey,
	).Replace(assets.Template("docker-setup.sh"))
}
