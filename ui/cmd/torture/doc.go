// Package torture holds no code of the product. Its tests run the commands on the lab while everything around them goes
// wrong: the process is killed at records of its journal, calls and commands fail in every way that the lab knows. The
// short ones run with all tests; make torture runs all of them and writes the tables of what happened to bin/torture.
package torture
