package backends

// An Appliance is the content of an OVF descriptor: the virtual machine to be deployed.
type Appliance struct {
	Name           string     `json:"name"`
	Product        string     `json:"product,omitempty"`
	Version        string     `json:"version,omitempty"`
	Hardware       int        `json:"hardware,omitempty"` // 13 for vmx-13
	CPUs           int        `json:"cpus,omitempty"`
	MemoryMB       int64      `json:"memory_mb,omitempty"`
	Networks       []string   `json:"networks"` // network names of the descriptor, mapped to port groups at deployment
	Adapters       []string   `json:"adapters"` // network name of each adapter, in order
	Configurations []string   `json:"configurations,omitempty"`
	Properties     []Property `json:"properties,omitempty"`
	Licences       []string   `json:"-"`
	Bytes          int64      `json:"bytes"`                // total size of its files
	DiskBytes      int64      `json:"disk_bytes,omitempty"` // maximum size of its disks
}

// A Property is a setting that an appliance reads at its first start.
type Property struct {
	Key     string `json:"key"`
	Label   string `json:"label,omitempty"`
	Type    string `json:"type"` // string, boolean, int, ip:NETWORK, ...
	Default string `json:"default,omitempty"`
	Asked   bool   `json:"asked"`            // the user may set it
	Needed  bool   `json:"needed,omitempty"` // must not be empty
	Secret  bool   `json:"secret,omitempty"` // a password: never shown or logged
}

// A Deployment holds the choices for deploying an appliance as a VM.
type Deployment struct {
	Name          string
	Datacenter    string // "" if there is only one
	Cluster       string // "" if there is only one
	Host          string // "": any host of the cluster
	Datastore     string
	Configuration string            // deployment configuration of the descriptor; "": its default
	Disk          string            // thin, thick, eagerZeroedThick
	Networks      map[string]string // port group by the descriptor's name
	Properties    map[string]string // value by key
}
