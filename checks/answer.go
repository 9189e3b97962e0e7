package checks

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// The modes that a row belongs to; nil is every mode.
var (
	pvrdmaOnly  = []answers.Mode{answers.PVRDMA}
	sriovOnly   = []answers.Mode{answers.SRIOV}
	gpuOnly     = []answers.Mode{answers.GPUDirect}
	dvsModes    = []answers.Mode{answers.PVRDMA, answers.SRIOV}
	directModes = []answers.Mode{answers.SRIOV, answers.GPUDirect}
)

// pass, warn, fail and unknown answer for a target with what was seen.
func pass(t backends.Ref, format string, args ...any) Answer { return answer(t, Pass, format, args) }
func warn(t backends.Ref, format string, args ...any) Answer { return answer(t, Warn, format, args) }
func fail(t backends.Ref, format string, args ...any) Answer { return answer(t, Fail, format, args) }
func unknown(t backends.Ref, format string, args ...any) Answer {
	return answer(t, Unknown, format, args)
}

// waiting is an unknown that is nobody's failure: a fact that no channel of this run reads, or the operator's word.
func waiting(t backends.Ref, format string, args ...any) Answer {
	a := unknown(t, format, args...)
	a.Quiet = true
	return a
}

func answer(t backends.Ref, s Status, format string, args []any) Answer {
	return Answer{Target: t, Status: s, Evidence: fmt.Sprintf(format, args...)}
}

// passIf passes when ok holds, else fails, with one text for both.
func passIf(ok bool, t backends.Ref, format string, args ...any) Answer {
	if ok {
		return pass(t, format, args...)
	}
	return fail(t, format, args...)
}

// warnIf warns when bad holds, else passes.
func warnIf(bad bool, t backends.Ref, format string, args ...any) Answer {
	if bad {
		return warn(t, format, args...)
	}
	return pass(t, format, args...)
}

// grade passes up to good, warns up to fair, else fails.
func grade(v, good, fair float64, t backends.Ref, format string, args ...any) Answer {
	switch {
	case v <= good:
		return pass(t, format, args...)
	case v <= fair:
		return warn(t, format, args...)
	}
	return fail(t, format, args...)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// isTrue reads how mlxconfig spells a set flag: True(1), True, 1.
func isTrue(s string) bool { return strings.HasPrefix(strings.ToLower(s), "true") || s == "1" }
