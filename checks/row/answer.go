// Package row contains what the rows of the catalogue have in common: functions for answers, for iterating over targets, and the
// modes of rows.
package row

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// The modes of a row; nil is every mode.
var (
	PVRDMA    = []answers.Mode{answers.PVRDMA}
	SRIOV     = []answers.Mode{answers.SRIOV}
	GPUDirect = []answers.Mode{answers.GPUDirect}
	OnDVS     = []answers.Mode{answers.PVRDMA, answers.SRIOV}
	Direct    = []answers.Mode{answers.SRIOV, answers.GPUDirect}
)

// The titles of the guides that most rows cite.
const (
	BitfusionGuide  = "PVRDMA and vSphere Bitfusion (VMware, 2021)"
	SRIOVStudy      = "RoCE SR-IOV Setup and Performance Study on vSphere 7.x (VMware, 2022)"
	KubernetesGuide = "RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA (NVIDIA/Mellanox, 2019)"
	GPUDirectGuide  = "Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7 " +
		"(NVIDIA/Mellanox)"
	ScalingGuide = "Scaling HPC and ML with GPUDirect RDMA on vSphere 6.7 (VMware)"
)

// Pass, Warn, Fail and Unknown return an answer for a target with its evidence.
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

// Waiting returns an unknown that is not a failure: a fact that this run cannot read, or one that the operator must confirm.
func Waiting(t backends.Ref, format string, args ...any) checks.Answer {
	a := Unknown(t, format, args...)
	a.Quiet = true
	return a
}

func answer(t backends.Ref, s checks.Status, format string, args []any) checks.Answer {
	return checks.Answer{Target: t, Status: s, Evidence: fmt.Sprintf(format, args...)}
}

// PassIf passes if ok holds, else fails, with the same text.
func PassIf(ok bool, t backends.Ref, format string, args ...any) checks.Answer {
	if ok {
		return Pass(t, format, args...)
	}
	return Fail(t, format, args...)
}

// WarnIf warns if bad holds, else passes.
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

// OnOff returns "on" or "off".
func OnOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// IsTrue parses a flag of firmware tools and VMX files: True(1), TRUE, 1.
func IsTrue(s string) bool { return strings.HasPrefix(strings.ToLower(s), "true") || s == "1" }
