package backends

// Kubernetes is what was read from a cluster for MPI jobs over RDMA.
type Kubernetes struct {
	Context string     `json:"context"`
	Nodes   []KubeNode `json:"nodes"`
	MPIJob  []string   `json:"mpijob,omitempty"`  // versions of MPIJob that the cluster serves: v2beta1
	Waits   bool       `json:"waits,omitempty"`   // its v2beta1 supports launcherCreationPolicy
	Network *NICPolicy `json:"network,omitempty"` // nil: the Network Operator is not installed
	Calico  *Calico    `json:"calico,omitempty"`  // nil: another network plugin
}

// A KubeNode is one node of a cluster.
type KubeNode struct {
	Name         string         `json:"name"`
	Ready        bool           `json:"ready"`
	Why          string         `json:"why,omitempty"` // why it is not ready
	ControlPlane bool           `json:"control_plane,omitempty"`
	Cordoned     bool           `json:"cordoned,omitempty"`
	OS           string         `json:"os"`      // CentOS Linux 7 (Core)
	Kernel       string         `json:"kernel"`  // uname -r
	Kubelet      string         `json:"kubelet"` // v1.29.3
	Runtime      string         `json:"runtime"` // containerd://1.7.13
	GPUs         int            `json:"gpus"`    // allocatable nvidia.com/gpu
	RDMA         map[string]int `json:"rdma,omitempty"`
}

// Worker reports whether jobs are scheduled on the node.
func (n KubeNode) Worker() bool { return !n.ControlPlane && !n.Cordoned }

// Calico is the number of Calico agents that run and that are ready. An agent is ready when its BGP sessions are established (TCP
// 179).
type Calico struct {
	Wanted int `json:"wanted"`
	Ready  int `json:"ready"`
}

// A NICPolicy is the policy of NVIDIA's Network Operator and its state.
type NICPolicy struct {
	State     string   `json:"state,omitempty"`     // ready, notReady, error; "": there is no policy
	Behind    []string `json:"behind,omitempty"`    // components that are not ready, with their messages
	Resources []string `json:"resources,omitempty"` // resources that its device plugins offer: nvidia.com/hostdev
}
