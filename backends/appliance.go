package backends

// An Appliance is what an OVF descriptor says of a virtual machine that is to be deployed.
type Appliance struct {
	Name           string     `json:"name"`
	Product        string     `json:"product,omitempty"`
	Version        string     `json:"version,omitempty"`
	Hardware       int        `json:"hardware,omitempty"` // 13 for vmx-13
	CPUs           int        `json:"cpus,omitempty"`
	MemoryMB       int64      `json:"memory_mb,omitempty"`
	Networks       []string   `json:"networks"` // names that stand for port groups
	Adapters       []string   `json:"adapters"` // of each adapter, in order, the name of its network
	Configurations []string   `json:"configurations,omitempty"`
	Properties     []Property `json:"properties,omitempty"`
	Licences       []string   `json:"-"`
	Bytes          int64      `json:"bytes"`                // of its files
	DiskBytes      int64      `json:"disk_bytes,omitempty"` // that its disks may grow to
}

// A Property is one that an appliance reads at its first start.
type Property struct {
	Key     string `json:"key"`
	Label   string `json:"label,omitempty"`
	Type    string `json:"type"` // string, boolean, int, ip:NETWORK, ...
	Default string `json:"default,omitempty"`
	Asked   bool   `json:"asked"`            // may be set
	Needed  bool   `json:"needed,omitempty"` // must not be empty
	Secret  bool   `json:"secret,omitempty"` // a password: neither shown nor logged
}

// A Deployment says how an appliance becomes a VM.
type Deployment struct {
	Name          string
	Datacenter    string // "": the only one
	Cluster       string // "": the only one
	Host          string // "": any of the cluster
	Datastore     string
	Configuration string            // of the descriptor; "": its default
	Disk          string            // thin, thick, eagerZeroedThick
	Networks      map[string]string // port group by the descriptor's name
	Properties    map[string]string // value by key
}
