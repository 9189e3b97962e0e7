// Package torture contains no code of the product. Its tests run the commands on the lab under faults: the process is killed at
// records of its journal, and calls and commands fail in every way that the lab supports. The short ones run with all tests; make
// torture runs all of them and writes tables of the results to bin/torture.
package torture
