// Package row holds what the rows of the catalogue are written with: the answers that they give, the targets that they
// ask, and the modes that they belong to.
package row

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// The modes that a row belongs to; nil is every mode.
var (
	PVRDMA    = []answers.Mode{answers.PVRDMA}
	SRIOV     = []answers.Mode{answers.SRIOV}
	GPUDirect = []answers.Mode{answers.GPUDirect}
	OnDVS     = []answers.Mode{answers.PVRDMA, answers.SRIOV}
	Direct    = []answers.Mode{answers.SRIOV, answers.GPUDirect}
)

// The guides that most rows cite, by title.
const (
	BitfusionGuide  = "PVRDMA and vSphere Bitfusion (VMware, 2021)"
	SRIOVStudy      = "RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022)"
	KubernetesGuide = "RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA (NVIDIA/Mellanox, 2019)"
	GPUDirectGuide  = "Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7 (NVIDIA/Mellanox)"
	ScalingGuide    = "Scaling HPC and ML with GPUDirect RDMA on vSphere 6.7 (VMware)"
)

// Pass, Warn, Fail and Unknown answer for a target with what was seen.
func Pass(t backends.Ref, format string, args ...any) checks.Answer {
	return answer(t, checks.Pass, format, args)
}
func Warn(t backends.Ref, format string, args ...any) checks.Answer {
	return answer(t, checks.Warn, format, args)
}
func Fail(t backends.Ref, format string, args ...any) checks.Answer {
	return answer(t, checks.Fail, format, args)
}
func Unknown(t backends.Ref, format string, args ...any) checks.Answer {
	return answer(t, checks.Unknown, format, args)
}

// Waiting is an unknown that is nobody's failure: a fact that no channel of this run reads, or the operator's word.
func Waiting(t backends.Ref, format string, args ...any) checks.Answer {
	a := Unknown(t, format, args...)
	a.Quiet = true
	return a
}

func answer(t backends.Ref, s checks.Status, format string, args []any) checks.Answer {
	return checks.Answer{Target: t, Status: s, Evidence: fmt.Sprintf(format, args...)}
}

// PassIf passes when ok holds, else fails, with one text for both.
func PassIf(ok bool, t backends.Ref, format string, args ...any) checks.Answer {
	if ok {
		return Pass(t, format, args...)
	}
	return Fail(t, format, args...)
}

// WarnIf warns when bad holds, else passes.
func WarnIf(bad bool, t backends.Ref, format string, args ...any) checks.Answer {
	if bad {
		return Warn(t, format, args...)
	}
	return Pass(t, format, args...)
}

// Grade passes up to good, warns up to fair, else fails.
func Grade(v, good, fair float64, t backends.Ref, format string, args ...any) checks.Answer {
	switch {
	case v <= good:
		return Pass(t, format, args...)
	case v <= fair:
		return Warn(t, format, args...)
	}
	return Fail(t, format, args...)
}

// OnOff spells a switch.
func OnOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// IsTrue reads how firmware tools and VMX files spell a set flag: True(1), TRUE, 1.
func IsTrue(s string) bool { return strings.HasPrefix(strings.ToLower(s), "true") || s == "1" }
