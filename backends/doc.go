// Package backends holds the words that the whole program shares: what a target, a setting and a value are,
// the facts of an inventory, the small interfaces through which the world is read and changed, and the kinds of
// error that decide an exit code. It does nothing by itself and imports nothing of the program.
package backends
