// Package plain shows plans, events and findings as lines: for pipes, dumb terminals and logs. It draws nothing and
// moves no cursor.
package plain
