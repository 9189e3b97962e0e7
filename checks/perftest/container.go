package perftest

import "fmt"

// Tests from containers at both ends, in addition to those of the guests themselves.
const (
	SendBandwidthContainer = SendBandwidth + inContainer
	SendLatencyContainer   = SendLatency + inContainer

	inContainer = " in containers"
)

// containerLine returns the command line that runs a command in a container of the node's image, with the flags of the guide
// (PVRDMA and vSphere Bitfusion, VMware, 2021, Using PVRDMA in an NGC Container) and without a limit on locked memory, which
// Docker sets by default.
func (n Node) containerLine(limit int, command string) string {
	return fmt.Sprintf(
		"timeout --foreground -k 5 %d %s run --rm --net=host --ipc=host --pid=host --privileged --cap-add=IPC_LOCK --ulimit memlock=-1 "+
			"--entrypoint= %s %s",
		limit+10, n.Engine, quote(n.Image), command)
}

// containerHint says what to do if a test failed only from containers.
func (m *Measurement) containerHint(code string) {
	if m.Image == "" || m.Error == "" || code == portTaken {
		return
	}
	m.Hint = fmt.Sprintf(
		"the guest itself has RDMA: find out what the image lacks with docker run --rm --net=host --privileged %s ibv_devinfo; NGC images "+
			"need the distribution's libraries (container.base, or rdma-setup generate dockerfile)", m.Image)
	if code == "mr_failed" {
		m.Hint = "the container may not lock memory: run it with --ulimit memlock=-1 and --cap-add=IPC_LOCK"
	}
}
