package backends

// Kubernetes is what a cluster says of itself, as far as MPI jobs over RDMA need it.
type Kubernetes struct {
	Context string     `json:"context"`
	Nodes   []KubeNode `json:"nodes"`
	MPIJob  []string   `json:"mpijob,omitempty"`  // versions of MPIJob that the cluster serves: v2beta1
	Waits   bool       `json:"waits,omitempty"`   // its v2beta1 knows launcherCreationPolicy
	Network *NICPolicy `json:"network,omitempty"` // nil: there is no Network Operator
	Calico  *Calico    `json:"calico,omitempty"`  // nil: another network
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
	GPUs         int            `json:"gpus"`    // nvidia.com/gpu that can be given away
	RDMA         map[string]int `json:"rdma,omitempty"`
}

// Worker reports whether jobs are placed on the node.
func (n KubeNode) Worker() bool { return !n.ControlPlane && !n.Cordoned }

// Calico is how many of Calico's agents run, and are ready: one is ready when its BGP sessions stand (TCP 179).
type Calico struct {
	Wanted int `json:"wanted"`
	Ready  int `json:"ready"`
}

// A NICPolicy is what NVIDIA's Network Operator was told, and how far it is.
type NICPolicy struct {
	State     string   `json:"state,omitempty"`     // ready, notReady, error; "": there is no policy
	Behind    []string `json:"behind,omitempty"`    // components that are not ready, with what they say
	Resources []string `json:"resources,omitempty"` // that its device plugins offer: nvidia.com/hostdev
}
