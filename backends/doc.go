// Package backends defines the terms that the whole program shares: targets, settings and values, the facts of an inventory, the
// small interfaces for reading and changing the real systems, and the kinds of error that decide the exit code. It does nothing
// by itself and imports no other package of the program.
package backends
