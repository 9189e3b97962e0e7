// Package wire speaks SOAP to a vCenter: it connects, checks whom it talks to, keeps the session alive, counts what it
// costs, reads properties in pages, waits for tasks without polling, and turns faults into errors that say what to do.
package wire
