package report

// NCCL is what NVIDIA's collective library is told, so that a job uses the fabric as it was measured.
type NCCL struct {
	Env []Variable `json:"env"`
	Why []string   `json:"why,omitempty"` // what is behind the choice, and what differs between guests
}

// A Variable is one of the environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// String is NAME=VALUE, as a shell's export takes it.
func (v Variable) String() string { return v.Name + "=" + v.Value }
