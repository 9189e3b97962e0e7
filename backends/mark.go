package backends

import "strings"

// SwitchMark is in the description of every DVS that this program creates. A switch without it belongs to someone else: it is
// completed only if nothing else uses it, and its NIOC is never disabled.
const SwitchMark = "made by rdma-setup"

// Ours reports whether this program created the switch.
func (s *Switch) Ours() bool { return strings.Contains(strings.ToLower(s.Note), SwitchMark) }
