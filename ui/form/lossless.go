package form

import "github.com/rdma-setup/rdma-setup/wizard/answers"

const aboutLossless = "yes once PFC, DSCP and ECN are set on it; nothing here can read that"

// asksLossless tells whether the hosts get PFC, which is worth nothing without that of the switch.
func asksLossless(a *answers.Answers) bool {
	return a.Mode == answers.SRIOV && a.QoS.Lossless == answers.LosslessPFC
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
