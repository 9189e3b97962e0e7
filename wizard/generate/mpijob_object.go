package generate

// The parts of Kubernetes' types that an MPIJob needs, in the usual order.
type (
	metadata struct {
		Name        string            `yaml:"name,omitempty"`
		Namespace   string            `yaml:"namespace,omitempty"`
		Labels      map[string]string `yaml:"labels,omitempty"`
		Annotations map[string]string `yaml:"annotations,omitempty"`
	}
	document struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Metadata   metadata `yaml:"metadata"`
		Spec       mpiSpec  `yaml:"spec"`
	}
	mpiSpec struct {
		Slots          int        `yaml:"slotsPerWorker"`
		LauncherPolicy string     `yaml:"launcherCreationPolicy,omitempty"`
		Policy         *runPolicy `yaml:"runPolicy,omitempty"`
		CleanPods      string     `yaml:"cleanPodPolicy,omitempty"` // v1alpha2
		Replicas       replicas   `yaml:"mpiReplicaSpecs"`
	}
	runPolicy struct {
		CleanPods string `yaml:"cleanPodPolicy"`
	}
	replicas struct {
		Launcher replica `yaml:"Launcher"`
		Worker   replica `yaml:"Worker"`
	}
	replica struct {
		Replicas int         `yaml:"replicas"`
		Template podTemplate `yaml:"template"`
	}
	podTemplate struct {
		Metadata *metadata `yaml:"metadata,omitempty"`
		Spec     podSpec   `yaml:"spec"`
	}
	podSpec struct {
		Affinity   *affinity   `yaml:"affinity,omitempty"`
		Containers []container `yaml:"containers"`
		Volumes    []volume    `yaml:"volumes,omitempty"`
	}
	affinity struct {
		PodAnti podAnti `yaml:"podAntiAffinity"`
	}
	podAnti struct {
		Required []affinityTerm `yaml:"requiredDuringSchedulingIgnoredDuringExecution"`
	}
	affinityTerm struct {
		Selector    labelSelector `yaml:"labelSelector"`
		TopologyKey string        `yaml:"topologyKey"`
	}
	labelSelector struct {
		Labels map[string]string `yaml:"matchLabels"`
	}
	container struct {
		Name      string     `yaml:"name"`
		Image     string     `yaml:"image"`
		Command   []string   `yaml:"command,omitempty"`
		Resources *resources `yaml:"resources,omitempty"`
		Security  *security  `yaml:"securityContext,omitempty"`
		Mounts    []mount    `yaml:"volumeMounts,omitempty"`
	}
	resources struct {
		Limits map[string]int `yaml:"limits"`
	}
	security struct {
		Privileged   bool          `yaml:"privileged,omitempty"`
		Capabilities *capabilities `yaml:"capabilities,omitempty"`
	}
	capabilities struct {
		Add []string `yaml:"add"`
	}
	mount struct {
		Name string `yaml:"name"`
		Path string `yaml:"mountPath"`
	}
	volume struct {
		Name  string    `yaml:"name"`
		Host  *hostPath `yaml:"hostPath,omitempty"`
		Empty *emptyDir `yaml:"emptyDir,omitempty"`
	}
	hostPath struct {
		Path string `yaml:"path"`
		Type string `yaml:"type"`
	}
	emptyDir struct {
		Medium string `yaml:"medium"`
	}
)

func (j Job) object() document {
	spec := mpiSpec{Slots: j.slots(), Replicas: replicas{
		Launcher: replica{Replicas: 1,
			Template: podTemplate{Spec: podSpec{Containers: []container{{Name: "launcher", Image: j.Image, Command: j.mpirun()}}}}},
		Worker: replica{Replicas: j.Workers, Template: j.worker()},
	}}
	if j.API == V1Alpha2 {
		spec.CleanPods = "Running"
	} else {
		spec.Policy = &runPolicy{CleanPods: "Running"}
		if !j.NoWait {
			spec.LauncherPolicy = "WaitForWorkersReady"
		}
	}
	return document{APIVersion: "kubeflow.org/" + string(j.API), Kind: "MPIJob", Metadata: metadata{Name: j.Name, Namespace: j.Namespace},
		Spec: spec}
}

// worker returns the template of the workers. Shared memory is a RAM disk, because the default of 64 MB is too small for NCCL.
func (j Job) worker() podTemplate {
	c := container{Name: "worker", Image: j.Image, Mounts: []mount{{"shared-memory", "/dev/shm"}}}
	p := podSpec{Volumes: []volume{{Name: "shared-memory", Empty: &emptyDir{Medium: "Memory"}}}}
	limits := map[string]int{}
	if j.GPUs > 0 {
		limits[gpuResource] = j.GPUs
	}
	switch {
	case j.Net.Path == TCP:
	case j.Resource != "":
		limits[j.Resource] = 1
		c.Security = &security{Capabilities: &capabilities{Add: []string{"IPC_LOCK"}}}
	default:
		c.Security = &security{Privileged: true, Capabilities: &capabilities{Add: []string{"IPC_LOCK"}}}
		c.Mounts = append(c.Mounts, mount{"infiniband", "/dev/infiniband"})
		p.Volumes = append(p.Volumes, volume{Name: "infiniband", Host: &hostPath{Path: "/dev/infiniband", Type: "Directory"}})
	}
	if len(limits) > 0 {
		c.Resources = &resources{Limits: limits}
	}
	t := podTemplate{}
	if j.Spread {
		labels := map[string]string{"rdma-setup/job": j.Name}
		t.Metadata = &metadata{Labels: labels}
		p.Affinity = &affinity{podAnti{[]affinityTerm{{Selector: labelSelector{labels}, TopologyKey: "kubernetes.io/hostname"}}}}
	}
	if j.Network != "" {
		if t.Metadata == nil {
			t.Metadata = &metadata{}
		}
		t.Metadata.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": j.Network} // Multus, How to use: pod annotation
	}
	p.Containers = []container{c}
	t.Spec = p
	return t
}
