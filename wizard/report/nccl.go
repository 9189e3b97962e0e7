package report

// NCCL contains the settings of NVIDIA's collective library with which a job uses the fabric as it was measured.
type NCCL struct {
	Env []Variable `json:"env"`
	Why []string   `json:"why,omitempty"` // the reasons for the choice, and differences between guests
}

// A Variable is an environment variable.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// String returns NAME=VALUE, as in a shell's export.
func (v Variable) String() string { return v.Name + "=" + v.Value }
