// Package kube queries a Kubernetes cluster through kubectl, with the context that the operator names. It reads, and it has the
// API server validate a manifest by a dry run; it never changes a cluster.
package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A Client queries one cluster.
type Client struct {
	context string
	run     Runner
}

// A Runner runs kubectl with arguments and stdin, and returns its output.
type Runner func(ctx context.Context, stdin []byte, args ...string) (stdout, stderr []byte, err error)

// New returns a client for a context of the kubeconfig.
func New(context string, run Runner) (*Client, error) {
	if strings.TrimSpace(context) == "" {
		return nil, backends.Errorf(backends.KindUsage, "", "list the contexts with: kubectl config get-contexts", "no Kubernetes context was given")
	}
	return &Client{context, run}, nil
}

// Kubectl runs the kubectl in the PATH.
func Kubectl(ctx context.Context, stdin []byte, args ...string) (stdout, stderr []byte, err error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	cmd.Env = backends.Environ()
	cmd.WaitDelay = 2 * time.Second // a credential plugin started by kubectl may outlive it
	err = cmd.Run()
	return out.Bytes(), errs.Bytes(), err
}

// Traced wraps a Runner so that each run is traced, without the manifest on its stdin.
func Traced(run Runner, trace backends.Trace) Runner {
	return func(ctx context.Context, stdin []byte, args ...string) (stdout, stderr []byte, err error) {
		c := backends.Call{Method: "kubectl", Target: "kubectl", Outcome: "ok", Payload: strings.Join(args, " "), Started: time.Now(), Sent: int64(len(stdin))}
		for _, a := range args {
			if at, ok := strings.CutPrefix(a, "--context="); ok {
				c.Target = at
			} else if !strings.HasPrefix(a, "-") {
				c.Method += " " + a
				break
			}
		}
		stdout, stderr, err = run(ctx, stdin, args...)
		if err != nil {
			c.Outcome = err.Error()
		}
		c.Took, c.Received = time.Since(c.Started), int64(len(stdout)+len(stderr))
		trace(c)
		return stdout, stderr, err
	}
}

// call runs a command in the context. Flag and value are one argument, so that no value can be taken for a flag.
func (c *Client) call(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	args = append([]string{"--context=" + c.context, "--request-timeout=20s"}, args...)
	out, errs, err := c.run(ctx, stdin, args...)
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	why := strings.TrimSpace(string(errs))
	if why == "" {
		why = err.Error()
	}
	return nil, backends.Errorf(kindOf(err, why), c.context, hintOf(err, why), "%s", why)
}

func kindOf(err error, why string) backends.ErrorKind {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(why, w) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return backends.KindPermanent
	case has("context was not found", "does not exist"):
		return backends.KindUsage
	case has("Unauthorized", "must be logged in", "certificate"):
		return backends.KindAuth
	case has("forbidden", "Forbidden"):
		return backends.KindPermission
	case has("refused", "no such host", "timeout", "deadline", "Unable to connect", "unreachable"):
		return backends.KindUnreachable
	}
	return backends.KindPermanent
}

func hintOf(err error, why string) string {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "install kubectl on the machine that runs rdma-setup"
	case kindOf(err, why) == backends.KindUsage:
		return "list the contexts with: kubectl config get-contexts"
	case kindOf(err, why) == backends.KindPermission:
		return "the account of the context must be allowed to get nodes, daemonsets and customresourcedefinitions"
	}
	return ""
}

// Survey reads the nodes, the versions of MPIJob that the cluster serves, and what its Network Operator offers.
func (c *Client) Survey(ctx context.Context) (*backends.Kubernetes, error) {
	k := &backends.Kubernetes{Context: c.context}
	misread := func(what string, err error) error {
		return backends.Errorf(backends.KindPermanent, c.context, "", "the output of kubectl about %s cannot be parsed: %w", what, err)
	}
	text, err := c.call(ctx, nil, "get", "nodes", "-o", "json")
	if err != nil {
		return nil, err
	}
	if k.Network, err = c.policy(ctx); err != nil {
		return nil, err
	}
	var offered []string
	if k.Network != nil {
		offered = k.Network.Resources
	}
	if k.Nodes, err = nodes(text, offered); err != nil {
		return nil, misread("the nodes", err)
	}
	if k.MPIJob, k.Waits, err = c.MPIJob(ctx); err != nil {
		return nil, err
	}
	text, err = c.call(ctx, nil, "get", "daemonsets", "--all-namespaces", "--selector=k8s-app=calico-node", "-o", "json")
	if err != nil {
		return nil, err
	}
	if k.Calico, err = calico(text); err != nil {
		return nil, misread("Calico", err)
	}
	return k, nil
}

// MPIJob reads the served versions of MPIJob, and whether v2beta1 supports launcherCreationPolicy.
func (c *Client) MPIJob(ctx context.Context) (versions []string, waits bool, err error) {
	text, err := c.call(ctx, nil, "get", "customresourcedefinition", "mpijobs.kubeflow.org", "--ignore-not-found", "-o", "json")
	if err != nil {
		return nil, false, err
	}
	if versions, waits, err = served(text); err != nil {
		return nil, false, backends.Errorf(backends.KindPermanent, c.context, "", "the output of kubectl about MPIJob cannot be parsed: %w", err)
	}
	return versions, waits, nil
}

// policy reads the one NicClusterPolicy that the Network Operator uses; nil if there is no operator.
func (c *Client) policy(ctx context.Context) (*backends.NICPolicy, error) {
	crd, err := c.call(ctx, nil, "get", "customresourcedefinition", "nicclusterpolicies.mellanox.com", "--ignore-not-found", "-o", "name")
	if err != nil || len(bytes.TrimSpace(crd)) == 0 {
		return nil, err
	}
	text, err := c.call(ctx, nil, "get", "nicclusterpolicies.mellanox.com", "nic-cluster-policy", "--ignore-not-found", "-o", "json")
	if err != nil {
		return nil, err
	}
	p, err := policyOf(text)
	if err != nil {
		return nil, backends.Errorf(backends.KindPermanent, c.context, "", "the output of kubectl about NicClusterPolicy cannot be parsed: %w", err)
	}
	return p, nil
}

// calico sums the daemon sets of Calico's agents; nil if there are none.
func calico(text []byte) (*backends.Calico, error) {
	var list struct {
		Items []struct {
			Status struct {
				Wanted int `json:"desiredNumberScheduled"`
				Ready  int `json:"numberReady"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list.Items) == 0 {
		return nil, err
	}
	var c backends.Calico
	for _, set := range list.Items {
		c.Wanted += set.Status.Wanted
		c.Ready += set.Status.Ready
	}
	return &c, nil
}

// Try has the API server validate a manifest by a server-side dry run, with its schemas and admission rules.
func (c *Client) Try(ctx context.Context, manifest []byte) error {
	_, err := c.call(ctx, manifest, "apply", "--dry-run=server", "-f", "-")
	return err
}

type nodeList struct {
	Items []struct {
		Metadata struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			Unschedulable bool `json:"unschedulable"`
		} `json:"spec"`
		Status struct {
			Allocatable map[string]string `json:"allocatable"`
			Conditions  []struct {
				Type, Status, Reason, Message string
			} `json:"conditions"`
			Info struct {
				OS      string `json:"osImage"`
				Kernel  string `json:"kernelVersion"`
				Kubelet string `json:"kubeletVersion"`
				Runtime string `json:"containerRuntimeVersion"`
			} `json:"nodeInfo"`
		} `json:"status"`
	} `json:"items"`
}

func nodes(text []byte, offered []string) ([]backends.KubeNode, error) {
	var list nodeList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	var out []backends.KubeNode
	for _, i := range list.Items {
		n := backends.KubeNode{
			Name: i.Metadata.Name, Cordoned: i.Spec.Unschedulable, Why: "it reports no Ready condition",
			OS: i.Status.Info.OS, Kernel: i.Status.Info.Kernel, Kubelet: i.Status.Info.Kubelet, Runtime: i.Status.Info.Runtime,
		}
		for _, role := range []string{"control-plane", "master"} {
			if _, ok := i.Metadata.Labels["node-role.kubernetes.io/"+role]; ok {
				n.ControlPlane = true
			}
		}
		for _, c := range i.Status.Conditions {
			if c.Type == "Ready" {
				n.Ready, n.Why = c.Status == "True", strings.TrimSpace(c.Reason+" "+c.Message)
			}
		}
		if n.Ready {
			n.Why = ""
		}
		for name, quantity := range i.Status.Allocatable {
			count, err := strconv.Atoi(quantity)
			if err != nil {
				continue // memory and other resources
			}
			switch {
			case name == "nvidia.com/gpu":
				n.GPUs = count
			case strings.HasPrefix(name, "rdma/"), slices.Contains(offered, name):
				if n.RDMA == nil {
					n.RDMA = map[string]int{}
				}
				n.RDMA[name] = count
			}
		}
		out = append(out, n)
	}
	return out, nil
}

func served(text []byte) (versions []string, waits bool, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, false, nil // not found
	}
	type fields struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var crd struct {
		Spec struct {
			Version  string `json:"version"` // CRDs of apiextensions v1beta1
			Versions []struct {
				Name   string `json:"name"`
				Served bool   `json:"served"`
				Schema struct {
					OpenAPI struct {
						Properties struct {
							Spec fields `json:"spec"`
						} `json:"properties"`
					} `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &crd); err != nil {
		return nil, false, err
	}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
			_, knows := v.Schema.OpenAPI.Properties.Spec.Properties["launcherCreationPolicy"]
			waits = waits || v.Name == "v2beta1" && knows
		}
	}
	if len(versions) == 0 && crd.Spec.Version != "" {
		versions = append(versions, crd.Spec.Version)
	}
	return versions, waits, nil
}
