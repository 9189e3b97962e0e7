package twin

import (
	"io"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Answers writes answers for the site as answers for its twin in a lab: the addresses of vCenter, shells and guests are replaced
// by the lab's. It returns false if the bundle has none and a is nil.
func (t *Twin) Answers(w io.Writer, l *lab.Lab, a *answers.Answers) (bool, error) {
	if a == nil {
		a = t.answers
	}
	if a == nil {
		return false, nil
	}
	out := *a
	out.VCenter = answers.VCenter{URL: l.URL().String(), Username: l.User()}
	out.ESXi.User, out.ESXi.Addresses = "root", map[string]string{}
	out.VMs = append([]answers.VM(nil), a.VMs...)
	l.World().View(func(s *world.State) {
		for _, h := range s.Hosts {
			out.ESXi.Addresses[h.Name] = h.ShellAddr
		}
		for i := range out.VMs {
			if v := s.VM(out.VMs[i].Name); v != nil {
				g := &out.VMs[i].Guest
				g.Address, g.Port, g.User = v.Guest.Address, v.Guest.Port, v.Guest.User
			}
		}
	})
	return true, answers.Save(w, &out)
}
