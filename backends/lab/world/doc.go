// Package world is the lab's model of a data centre: hosts, their adapters and settings, distributed switches, VMs and their
// guests. The simulated vCenter, the ESXi shells and the Linux guests all read and change this one model, so a change made
// through one of them is visible in the others.
//
// One mutex protects all data. Read it inside [World.View]. Change it through the methods of World: they reject what the real
// system would reject, write the log and notify the watchers. Callbacks of View must not call methods of World. Watchers and
// power hooks are called without the mutex and may call them.
package world
