package fabric

import "sync"

// Load counts the tests under way on each port. The zero value is ready; it is safe for concurrent use.
type Load struct {
	mu    sync.Mutex
	tests map[Port]int
}

// Start notes a test on all ports of p. The caller calls end once when it is over.
func (l *Load) Start(p Path) (end func()) {
	l.add(p, 1)
	return func() { l.add(p, -1) }
}

func (l *Load) add(p Path, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tests == nil {
		l.tests = map[Port]int{}
	}
	for _, port := range p.Ports {
		if l.tests[port] += n; l.tests[port] == 0 {
			delete(l.tests, port)
		}
	}
}

// Share returns what part of the ports of p one test has now, 1 when it is alone.
func (l *Load) Share(p Path) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := 1
	for _, port := range p.Ports {
		most = max(most, l.tests[port])
	}
	return 1 / float64(most)
}
