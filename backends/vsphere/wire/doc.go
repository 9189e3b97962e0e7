// Package wire is the SOAP connection to a vCenter: it connects, verifies the server, keeps the session alive, counts calls and
// bytes, reads properties in pages, waits for tasks without polling, and turns faults into errors with hints.
package wire
