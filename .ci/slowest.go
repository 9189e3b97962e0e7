// Command slowest reads go test -json and prints what go test prints without it: a line for each package and the output of
// tests that failed. Then it lists the ten tests that took longest, so that growth is seen, and fails if a test was skipped: what cannot
// be tried is a failure. Other lines go through.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// An event is one line of test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // s
}

// A test is one of a package; Test is "" for what belongs to the package.
type test struct{ Package, Test string }

func main() {
	said := map[test][]string{} // by tests that have not ended well
	took := map[test]float64{}  // s, without what its subtests took
	var skipped []test
	first := map[string][]test{} // tests of a package in the order in which they began
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil || e.Action == "" {
			fmt.Println(in.Text())
			continue
		}
		k := test{e.Package, e.Test}
		switch {
		case e.Action == "build-output":
			fmt.Print(e.Output)
		case e.Action == "run":
			first[e.Package] = append(first[e.Package], k)
		case e.Action == "output" && e.Test != "":
			if !strings.HasPrefix(e.Output, "=== ") {
				said[k] = append(said[k], e.Output)
			}
		case e.Action == "output" && e.Output != "PASS\n":
			fmt.Print(e.Output)
		case e.Test != "" && (e.Action == "pass" || e.Action == "skip" || e.Action == "fail"):
			took[k] += e.Elapsed
			if i := strings.LastIndexByte(e.Test, '/'); i > 0 {
				took[test{e.Package, e.Test[:i]}] -= e.Elapsed
			}
			switch e.Action {
			case "pass":
				delete(said, k)
			case "skip":
				skipped = append(skipped, k)
			}
		case e.Action == "fail": // the package: its tests that failed, and those that never ended
			for _, k := range first[e.Package] {
				fmt.Print(strings.Join(said[k], ""))
			}
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
	var slow []test
	for k := range took {
		slow = append(slow, k)
	}
	slices.SortFunc(slow, func(a, b test) int { return cmp.Compare(took[b], took[a]) })
	fmt.Println("The slowest tests, without their subtests:")
	for _, k := range slow[:min(10, len(slow))] {
		fmt.Printf("%6.1f s  %s %s\n", took[k], k.Package, k.Test)
	}
	for _, k := range skipped {
		fmt.Printf("skipped: %s %s\n%s", k.Package, k.Test, strings.Join(said[k], ""))
	}
	if len(skipped) > 0 {
		os.Exit(1)
	}
}
