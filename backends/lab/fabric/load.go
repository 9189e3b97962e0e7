package fabric

import "sync"

// Load counts the running tests on each port, separately for each direction. The zero value is ready to use. Load is safe for
// concurrent use.
type Load struct {
	mu    sync.Mutex
	tests map[way]map[Port]int // by the port at the other end
	links map[Link]int
}

// A way is one direction of a port.
type way struct {
	port Port
	in   bool // towards the host
}

// ways returns the directions that a path uses, with the port at the other end of each. A path within one port uses only the
// sending direction of the port.
func (p Path) ways() map[way]Port {
	if len(p.Ports) == 0 {
		return nil
	}
	from, to := p.Ports[0], p.Ports[len(p.Ports)-1]
	list := map[way]Port{{from, false}: to}
	if len(p.Ports) > 1 {
		list[way{to, true}] = from
	}
	return list
}

// Start records a test on the ports of p. The caller calls end once, when the test ends.
func (l *Load) Start(p Path) (end func()) {
	l.add(p, 1)
	return func() { l.add(p, -1) }
}

func (l *Load) add(p Path, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tests == nil {
		l.tests = map[way]map[Port]int{}
	}
	if l.links == nil {
		l.links = map[Link]int{}
	}
	for _, link := range p.Links {
		if l.links[link] += n; l.links[link] == 0 {
			delete(l.links, link)
		}
	}
	for w, peer := range p.ways() {
		if l.tests[w] == nil {
			l.tests[w] = map[Port]int{}
		}
		if l.tests[w][peer] += n; l.tests[w][peer] == 0 {
			delete(l.tests[w], peer)
		}
	}
}

// Share returns the fraction of the port capacity that each test on p currently gets. It is 1 if there is only one test.
func (l *Load) Share(p Path) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := 1
	for w := range p.ways() {
		sum := 0
		for _, n := range l.tests[w] {
			sum += n
		}
		most = max(most, sum)
	}
	return 1 / float64(most)
}

// Slot returns the rate in Gb/s that the PCIe links of p currently allow each test; 0 means no limit. Tests on two ports of a
// card, and on two cards below one PCIe switch, share a link.
func (l *Load) Slot(p Path) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	least := 0.0
	for _, link := range p.Links {
		if each := link.Gbps / float64(max(1, l.links[link])); link.Gbps > 0 && (least == 0 || each < least) {
			least = each
		}
	}
	return least
}

// Senders returns the number of ports that currently send to the receiver of p. If there are two or more, the queue of the
// receiver's switch port fills up.
func (l *Load) Senders(p Path) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(p.Ports) < 2 {
		return 1
	}
	return max(1, len(l.tests[way{p.Ports[1], true}]))
}
