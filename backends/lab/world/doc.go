// Package world is the lab's own model of a data centre: hosts, their adapters and settings, distributed switches,
// VMs and the guests in them. The simulated vCenter, the ESXi shells and the Linux guests all read and change this
// one model, so that what is set through one of them shows in the others.
//
// Everything is guarded by one mutex. Read inside [World.View], change through the methods of World, which refuse what
// the real system would refuse, write the log and notify the watchers. Callbacks of View must not call methods of
// World; watchers and power hooks are called without the mutex held and may.
package world
