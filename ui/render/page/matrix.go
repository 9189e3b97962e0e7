package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// A Map is a heat map of all pairs: rows are clients, columns servers. Coordinates are those of an SVG view box.
type Map struct {
	Title, Desc string
	Unit        string // Gb/s, us
	Nodes       []Node
	Side        float64 // of a cell
	Inner       float64 // of the painted part of a cell
	Left, Top   float64 // of the first cell
	W, H        float64
	Cells       []Cell
	Runs        []Run   // drawn instead of Cells where these are many
	Numbers     bool    // cells are large enough for their figures
	Legend      []Shade // from good to bad
	Outliers    []Outlier
	Suspects    []string // nodes with outliers in nearly all of their pairs; Outliers omits those
	MoreOut     int      // how many Outliers omits
}

// A Run draws all cells of a class; the unit is one cell.
type Run struct{ Class, Path string }

// A Node is a row and a column.
type Node struct {
	Name  string
	Short string  // fits the margin; "" if there is no room for it
	At    float64 // middle of its row and of its column, from where the cells begin
}

// A Cell is one pair that was measured.
type Cell struct {
	Row, Column int
	X, Y        float64
	TX, TY      float64 // middle
	Class       string  // h0 (as expected) to h5, same (one host), none (no figure)
	Figure      string
	Hint        string // pair and figure in full
	Out         bool
}

// A Shade is an entry of the legend: it explains a class of cells.
type Shade struct{ Class, Label string }

// heat lays out the map of a test; nil if fewer than half of the nodes' pairs were measured in at least one direction.
func heat(name string, some []perftest.Measurement, latency bool) *Map {
	names := nodes(some)
	n := len(names)
	met := map[[2]string]bool{}
	for _, m := range some {
		from, to := m.Names()
		met[[2]string{min(from, to), max(from, to)}] = true
	}
	if n < 2 || 4*len(met) < ofOneRail(some) {
		return nil
	}
	m := &Map{Title: name + " between all pairs", Unit: "Gb/s", Side: side(n), Inner: side(n) - 1, Numbers: n <= 24, Legend: shades(latency)}
	if latency {
		m.Unit = "us"
	}
	longest := 0
	at := map[string]int{}
	for i, name := range names {
		short := shorten(name, 18)
		if i%named(m.Side) != 0 {
			short = ""
		}
		longest = max(longest, len([]rune(short)))
		at[name] = i
		m.Nodes = append(m.Nodes, Node{name, short, tenth((float64(i) + 0.5) * m.Side)})
	}
	m.Left = tenth(12 + 6.6*float64(longest))
	m.Top = m.Left
	m.W, m.H = tenth(m.Left+float64(n)*m.Side+4), tenth(m.Top+float64(n)*m.Side+4)
	odd := outliers(some, latency)
	suspect := suspects(some, odd)
	for i, x := range some {
		m.Cells = append(m.Cells, cell(x, latency, m, at, odd[i] != nil))
		from, to := x.Names()
		if odd[i] != nil && suspect[from] == "" && suspect[to] == "" {
			m.Outliers = append(m.Outliers, *odd[i])
		}
	}
	if n > keepCells {
		m.Runs = m.runs()
	}
	for _, name := range names {
		if s := suspect[name]; s != "" {
			m.Suspects = append(m.Suspects, s)
		}
	}
	slices.SortStableFunc(m.Outliers, func(a, b Outlier) int { return cmp.Or(cmp.Compare(b.below, a.below), plain.Natural(a.Pair, b.Pair)) })
	m.Desc = fmt.Sprintf("%d machines, %s measured from the machine of the row to that of the column, %s.", n,
		plain.Counted(len(some), "pair"), plain.Counted(len(odd), "outlier"))
	m.Outliers = m.Outliers[:min(len(m.Outliers), keepOutliers)]
	m.MoreOut = len(odd) - len(m.Outliers)
	return m
}

// ofOneRail counts the ordered pairs of nodes that share a rail; others need not be measured.
func ofOneRail(some []perftest.Measurement) int {
	rail := map[string]string{}
	for _, m := range some {
		from, to := m.Names()
		rail[from], rail[to] = m.RailFrom, m.RailTo
	}
	on, out := map[string]int{}, 0
	for _, r := range rail {
		on[r]++
	}
	for _, n := range on {
		out += n * (n - 1)
	}
	return out
}

func nodes(some []perftest.Measurement) []string {
	seen := map[string]bool{}
	for _, m := range some {
		from, to := m.Names()
		seen[from], seen[to] = true, true
	}
	return slices.SortedFunc(maps.Keys(seen), plain.Natural)
}

// keepCells bounds the nodes of a map whose every cell can be pointed at to read its figure.
const keepCells = 64

// runs joins neighbours of one class and row into one line each, and outlines outliers.
func (m *Map) runs() []Run {
	at := map[[2]int]*Cell{}
	for i := range m.Cells {
		at[[2]int{m.Cells[i].Row, m.Cells[i].Column}] = &m.Cells[i]
	}
	class := func(row, column int) string {
		if c := at[[2]int{row, column}]; c != nil {
			return c.Class
		}
		return ""
	}
	paths := map[string]*strings.Builder{"out": {}}
	for row := range m.Nodes {
		for column := 0; column < len(m.Nodes); {
			from, of := column, class(row, column)
			for column < len(m.Nodes) && class(row, column) == of {
				if c := at[[2]int{row, column}]; c != nil && c.Out {
					fmt.Fprintf(paths["out"], "M%d %dh1v1h-1z", column, row)
				}
				column++
			}
			if of == "" {
				continue
			}
			if paths[of] == nil {
				paths[of] = &strings.Builder{}
			}
			fmt.Fprintf(paths[of], "M%d %d.5h%d", from, row, column-from)
		}
	}
	var out []Run
	for _, s := range append(m.Legend, Shade{Class: "out"}) {
		if b := paths[s.Class]; b != nil && b.Len() > 0 {
			out = append(out, Run{s.Class, b.String()})
		}
	}
	return out
}

// named returns n if every n-th node has a name beside its cells of this size.
func named(side float64) int { return int(math.Ceil(12 / side)) }

// side is the size of a cell: figures fit up to 24 nodes, and 64 and 200 fit a page.
func side(n int) float64 {
	switch {
	case n <= 8:
		return 46
	case n <= 24:
		return 36
	case n <= keepCells:
		return 15
	}
	return max(2, math.Floor(1040/float64(n)))
}

func shorten(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most/2]) + "…" + string(r[len(r)-(most-most/2-1):])
}

// The limits of the shades, as shares of the expected value. For bandwidth more is better, for latency less.
var (
	rateShades = []float64{0.97, 0.93, 0.85, 0.70, 0.50}
	timeShades = []float64{0.60, 0.80, 1.00, 1.50, 2.50}
)

func shades(latency bool) []Shade {
	var out []Shade
	limits, from, last := rateShades, "from %.0f %% of what is expected", "less"
	if latency {
		limits, from, last = timeShades, "up to %.0f %% of what is good", "longer"
	}
	for i, v := range limits {
		out = append(out, Shade{fmt.Sprintf("h%d", i), fmt.Sprintf(from, v*100)})
	}
	return append(out, Shade{fmt.Sprintf("h%d", len(limits)), last}, Shade{"same", "on one host, or a host without an RDMA card"},
		Shade{"none", "no figure"})
}

func cell(m perftest.Measurement, latency bool, on *Map, at map[string]int, odd bool) Cell {
	from, to := m.Names()
	row, column := at[from], at[to]
	c := Cell{
		Row: row, Column: column, X: tenth(on.Left + float64(column)*on.Side), Y: tenth(on.Top + float64(row)*on.Side), Class: shade(m, latency),
		Out:  odd,
		Hint: m.Pair() + ": " + figure(m),
	}
	c.TX, c.TY = tenth(c.X+on.Side/2), tenth(c.Y+on.Side/2)
	if v := achieved(m); v > 0 {
		c.Figure = three(v)
	}
	return c
}

func achieved(m perftest.Measurement) float64 {
	if isLatency(m) {
		return m.AchievedUs
	}
	return m.AchievedGbps
}

func shade(m perftest.Measurement, latency bool) string {
	v, want, limits := achieved(m), m.ExpectedGbps, rateShades
	if latency {
		want, limits = m.ExpectedUs, timeShades
	}
	switch {
	case m.Verdict == perftest.VerdictNotApplicable:
		return "same"
	case v <= 0 || want <= 0:
		return "none"
	}
	for i, limit := range limits {
		if latency && v/want <= limit || !latency && v/want >= limit {
			return fmt.Sprintf("h%d", i)
		}
	}
	return "h5"
}

// Cell returns the entry in a row and a column; nil if nothing was measured.
func (m *Map) Cell(row, column int) *Cell {
	for i := range m.Cells {
		if c := &m.Cells[i]; c.Row == row && c.Column == column {
			return c
		}
	}
	return nil
}

// Figure returns the figure in a row and a column; "" if nothing was measured.
func (m *Map) Figure(row, column int) string {
	c := m.Cell(row, column)
	switch {
	case c == nil:
		return ""
	case c.Out:
		return c.Figure + " (outlier)"
	}
	return c.Figure
}
