// Package realtest tests package guest on real kernels: Debian's kernel, sshd, sudo, apt, netplan, rdma-core and perftest in
// QEMU, with soft-RoCE and with VMware's own vmw_pvrdma on QEMU's pvrdma device. The vCenter is the embedded lab, so that the
// program's own commands act on the real guests. Its tests have the build tag e2e and are run by make e2e; make e2e-full runs more
// scenarios.
package realtest
