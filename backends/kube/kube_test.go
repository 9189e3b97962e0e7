package kube_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/kube"
)

const nodes = `{"items":[{"metadata":{"name":"w-1","labels":{"node-role.kubernetes.io/master":""}},"spec":{"unschedulable":true},
 "status":{"allocatable":{"nvidia.com/gpu":"2","rdma/a":"63","memory":"1Ki","cpu":"x"},"conditions":[{"type":"DiskPressure","status":"False"},{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":"gone"}],
 "nodeInfo":{"osImage":"CentOS Linux 7 (Core)","kernelVersion":"3.10.0","kubeletVersion":"v1.15.0","containerRuntimeVersion":"docker://18"}}},
 {"metadata":{"name":"w-2"},"status":{}}]}`

func TestSurvey(t *testing.T) {
	var calls []string
	c, err := kube.New("lab; reboot", func(_ context.Context, _ []byte, args ...string) ([]byte, []byte, error) {
		calls = append(calls, strings.Join(args, " "))
		if strings.Contains(calls[len(calls)-1], "nodes") {
			return []byte(nodes), nil, nil
		}
		if strings.Contains(calls[len(calls)-1], "nicclusterpolicies") {
			return nil, nil, nil
		}
		return []byte(`{"spec":{"version":"v1alpha2"}}`), nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	k, err := c.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &backends.Kubernetes{Context: "lab; reboot", MPIJob: []string{"v1alpha2"}, Nodes: []backends.KubeNode{
		{Name: "w-1", Why: "NodeStatusUnknown gone", ControlPlane: true, Cordoned: true, OS: "CentOS Linux 7 (Core)", Kernel: "3.10.0", Kubelet: "v1.15.0", Runtime: "docker://18", GPUs: 2, RDMA: map[string]int{"rdma/a": 63}},
		{Name: "w-2", Why: "it reports no Ready condition"},
	}}
	if d := cmp.Diff(want, k); d != "" {
		t.Error(d)
	}
	for _, call := range calls {
		if !strings.HasPrefix(call, "--context=lab; reboot --request-timeout=") {
			t.Errorf("%q: the context must be one argument with its flag", call)
		}
		for _, verb := range []string{"create", "delete", "patch", "apply"} {
			if strings.Contains(call, " "+verb) {
				t.Errorf("a survey that changes the cluster: %q", call)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name, stderr string
		err          error
		kind         backends.ErrorKind
	}{
		{"no kubectl", "", &exec.Error{Name: "kubectl", Err: exec.ErrNotFound}, backends.KindPermanent},
		{"no such context", "error: context was not found for specified context: x", errors.New("exit status 1"), backends.KindUsage},
		{"not logged in", "error: You must be logged in to the server (Unauthorized)", errors.New("exit status 1"), backends.KindAuth},
		{"not allowed", "Error from server (Forbidden): nodes is forbidden", errors.New("exit status 1"), backends.KindPermission},
		{"nobody there", "Unable to connect to the server: dial tcp 10.0.0.1:6443: connect: connection refused", errors.New("exit status 1"), backends.KindUnreachable},
		{"silent", "", errors.New("exit status 1"), backends.KindPermanent},
	} {
		c, err := kube.New("x", func(context.Context, []byte, ...string) ([]byte, []byte, error) {
			return nil, []byte(tt.stderr), tt.err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Survey(t.Context()); backends.KindOf(err) != tt.kind || !strings.Contains(err.Error(), "x: ") {
			t.Errorf("%s: %v is %q, want %q", tt.name, err, backends.KindOf(err), tt.kind)
		}
		if err := c.Try(t.Context(), []byte("kind: MPIJob")); backends.KindOf(err) != tt.kind {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := kube.New(" ", kube.Kubectl); backends.KindOf(err) != backends.KindUsage {
		t.Errorf("no context: %v", err)
	}
	c, err := kube.New("x", func(context.Context, []byte, ...string) ([]byte, []byte, error) { return []byte("<html>"), nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Survey(t.Context()); err == nil {
		t.Error("a page of a proxy is taken for nodes")
	}
}
