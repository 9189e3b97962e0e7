//go:build e2e

package realtest_test

import "testing"

// A fault is an environment or a guest in which the program has to refuse, in words that fit, and leave all as it was.
type fault struct {
	name     string
	users    [2]string
	variable string // of the environment
	value    string
	code     int
	says     string // pattern
}

// faultsOfLogin has to do with who may come in, and as whom.
func (s *site) faultsOfLogin(bare [2]map[string]string) {
	stranger := newKey(s.t)
	other := newKey(s.t)
	first, second := s.pair[0], s.pair[1]
	lab := string(s.read("known_hosts.lab"))
	for _, f := range []fault{
		{name: "unknown host key", variable: "RDMA_SETUP_KNOWN_HOSTS", value: s.write("unknown", lab+first.known(first.host)+"\n"),
			code: 4, says: `vm-02.*the host key is not known`},
		{name: "changed host key", variable: "RDMA_SETUP_KNOWN_HOSTS", value: s.write("changed", lab+first.known(first.host)+"\n"+second.known(stranger)+"\n"),
			code: 4, says: `vm-02.*has changed: known is`},
		{name: "wrong key", variable: "RDMA_SETUP_SSH_KEY", value: s.write("other", string(other.private)),
			code: 4, says: `vm-01.*not let in.*other`},
		{name: "sudo wants a password and has none", users: [2]string{"ubuntu", "ops"}, variable: "RDMA_SETUP_SUDO_PASSWORD", value: "",
			code: 3, says: `vm-02.*sudo wants a password and none was given`},
		{name: "sudo gets a wrong password", users: [2]string{"ubuntu", "ops"}, variable: "RDMA_SETUP_SUDO_PASSWORD", value: "no-secret",
			code: 3, says: `vm-02.*sudo did not accept the password`},
		{name: "sudo gets its password", users: [2]string{"ubuntu", "ops"}, variable: "RDMA_SETUP_SUDO_PASSWORD", value: "ops-secret",
			code: 0, says: `2 guests: vm-01, vm-02`},
		{name: "no sudo", users: [2]string{"ubuntu", "plain"}, variable: "RDMA_SETUP_SUDO_PASSWORD", value: "plain-secret",
			code: 3, says: `vm-02.*sudo does not let this user run commands as root`},
		{name: "login shells that are not POSIX: fish and tcsh", users: [2]string{"fisher", "csher"}, code: 0, says: `2 guests: vm-01, vm-02`},
		{name: "a profile that prints", users: [2]string{"loud", "loud"}, code: 0, says: `2 guests: vm-01, vm-02`},
	} {
		s.scenario(f.name, func(t *testing.T) {
			users := f.users
			if users[0] == "" {
				users = [2]string{"ubuntu", "ubuntu"}
			}
			if f.variable == "" {
				f.variable = "LANG"
			}
			s.with(f.variable, f.value, func() {
				out, errs := s.must(f.code, "plan", "-f", s.answers(users[:]...))
				s.says(out+errs, f.says)
			})
		})
	}
	s.scenario("none of these left anything in the guests", func(*testing.T) { s.unchanged(bare) })
}
