//go:build e2e

package realtest_test

import "testing"

// A fault is an environment or a guest in which the program must refuse with a fitting message and change nothing.
type fault struct {
	name     string
	users    [2]string
	variable string // of the environment
	value    string
	code     int
	says     []string // patterns
}

// faultsOfLogin checks faults of authentication and privileges.
func (s *site) faultsOfLogin() {
	stranger := newKey(s.t)
	other := newKey(s.t)
	second := s.guests[1]
	lab := string(s.read("known_hosts.lab"))
	for _, f := range []fault{
		{name: "unknown and changed host key", variable: "RDMA_SETUP_KNOWN_HOSTS", value: s.write("strange", lab+second.known(stranger)+"\n"),
			code: 4, says: []string{`vm-01.*the host key is not known`, `vm-02.*has changed: the known key is`}},
		{name: "wrong key", variable: "RDMA_SETUP_SSH_KEY", value: s.write("other", string(other.private)),
			code: 4, says: []string{`vm-01.*was refused.*other`}},
		{name: "sudo wants a password and has none", users: [2]string{"ubuntu", "ops"}, variable: "RDMA_SETUP_SUDO_PASSWORD", value: "",
			code: 3, says: []string{`vm-02.*sudo needs a password and none is known`}},
		{name: "sudo gets a wrong password; no sudo", users: [2]string{"ops", "plain"}, variable: "RDMA_SETUP_SUDO_PASSWORD",
			value: "plain-secret",
			code:  3, says: []string{`vm-01.*sudo did not accept the password`, `vm-02.*sudo does not let this user run commands as root`}},
		{name: "sudo gets its password; fish as login shell", users: [2]string{"ops", "fisher"}, variable: "RDMA_SETUP_SUDO_PASSWORD",
			value: "ops-secret",
			code:  0, says: []string{`2 guests: vm-01, vm-02`}},
	} {
		s.scenario(f.name, func(t *testing.T) {
			users := f.users
			if users[0] == "" {
				users = [2]string{"ubuntu", "ubuntu"}
			}
			s.with(f.variable, f.value, func() {
				out, errs := s.must(f.code, "plan", "-f", s.answers(users[:]...))
				s.says(out+errs, f.says...)
			})
		})
	}
	s.scenario("tcsh as login shell; a profile that prints; a plan names what bare guests lack and touches no host", func(*testing.T) {
		s.planned(s.answers("csher", "loud"))
	})
}
