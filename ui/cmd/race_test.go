//go:build race

package cmd_test

const memoryFactor = 10
