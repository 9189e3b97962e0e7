package journal

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Same fails if vCenter or answers differ from those of the run; "" is not compared, and neither is what a damaged journal lacks.
func (s *State) Same(vcenter, answers string) error {
	if vcenter != "" && s.Header.VCenter != "" && vcenter != s.Header.VCenter {
		return backends.Errorf(backends.KindRefused, "", "Connect to "+s.Header.URL+".",
			"run %s is of the vCenter %s (%s), not of %s", s.Header.Run, s.Header.URL, s.Header.VCenter, vcenter)
	}
	if answers != "" && answers != s.Header.Answers {
		return backends.Errorf(backends.KindRefused, "",
			"Resume with the answers of the run, or apply the new ones as a run of their own.",
			"the answers have changed since run %s began:\n%s", s.Header.Run, difference(s.Header.Answers, answers))
	}
	return nil
}

const diffLimit = 20 // lines shown

// difference returns the lines that only one of the texts has, - for the old and + for the new, in order.
func difference(old, now string) string {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	var out []string
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for len(a) > 0 || len(b) > 0 {
		i, j := nearest(a, b)
		for _, l := range a[:i] {
			out = append(out, "- "+l)
		}
		for _, l := range b[:j] {
			out = append(out, "+ "+l)
		}
		a, b = a[i:], b[j:]
		for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
			a, b = a[1:], b[1:]
		}
	}
	if more := len(out) - diffLimit; more > 0 {
		out = append(out[:diffLimit], fmt.Sprintf("(and %d lines more)", more))
	}
	return strings.Join(out, "\n")
}

// nearest returns the indexes of the nearest line that both have.
func nearest(a, b []string) (int, int) {
	for sum := 1; sum < len(a)+len(b); sum++ {
		for i := max(0, sum-len(b)+1); i <= min(sum, len(a)-1); i++ {
			if a[i] == b[sum-i] {
				return i, sum - i
			}
		}
	}
	return len(a), len(b)
}
