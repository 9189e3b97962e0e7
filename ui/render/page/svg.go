package page

import (
	"fmt"
	"math"
	"strings"
)

// A Chart holds curves over message sizes, in the coordinates of an SVG view box. The x axis is in powers of two.
type Chart struct {
	Title, Desc              string
	W, H                     float64
	Left, Top, Right, Bottom float64 // edges of the plot
	X, Y                     []Tick
	XLabel, YLabel           string
	Band                     string // points of a polygon from the lowest to the highest; "" when there is none
	BandLabel                string
	Lines                    []Line
	Rules                    []Rule
}

// A Tick is a mark on an axis.
type Tick struct {
	At    float64
	Label string
}

// A Line is a curve; Points as the attribute of a polyline has them.
type Line struct {
	Class  string // l0, l1, ...
	Points string
	Label  string
}

// A Rule is a level that curves are compared with.
type Rule struct {
	Class  string
	Y      float64
	Label  string
	LabelY float64
}

// A scale turns a value into a coordinate.
type scale func(float64) float64

// logarithmic maps low..high to from..to.
func logarithmic(low, high, from, to float64) scale {
	span := math.Log(high / low)
	if span <= 0 {
		span = 1
	}
	return func(v float64) float64 { return tenth(from + (to-from)*math.Log(max(v, low)/low)/span) }
}

func newChart(title string) *Chart {
	return &Chart{Title: title, W: 520, H: 300, Left: 54, Top: 28, Right: 492, Bottom: 252, XLabel: "message size"}
}

// sizes lays out the x axis with about seven marks.
func (c *Chart) sizes(low, high int64) scale {
	x := logarithmic(float64(low), float64(high), c.Left, c.Right)
	steps := math.Log2(float64(high) / float64(low))
	step := max(1, int(math.Ceil(steps/6)))
	for b, i := low, 0; b <= high && b > 0 && i < 64; b, i = b<<step, i+1 {
		c.X = append(c.X, Tick{x(float64(b)), size(b)})
	}
	return x
}

// rates lays out a linear y axis from 0 to high, with round marks and room above.
func (c *Chart) rates(high float64) scale {
	step := round(high * 1.1 / 5)
	top := step * math.Ceil(high*1.08/step)
	y := func(v float64) float64 { return tenth(c.Bottom + (c.Top-c.Bottom)*v/top) }
	for v := 0.0; v <= top*1.0001; v += step {
		c.Y = append(c.Y, Tick{y(v), fmt.Sprintf("%g", math.Round(v*1000)/1000)})
	}
	return y
}

// times lays out a logarithmic y axis, from 1, 2, 5 or 10 times a power of ten to another.
func (c *Chart) times(low, high float64) scale {
	bottom := math.Pow(10, math.Floor(math.Log10(low)))
	top := math.Pow(10, math.Ceil(math.Log10(high*1.05)))
	for _, f := range []float64{5, 2} {
		if bottom*f <= low {
			bottom *= f
			break
		}
	}
	for _, f := range []float64{5, 2} {
		if top/f >= high*1.05 {
			top /= f
			break
		}
	}
	y := logarithmic(bottom, top, c.Bottom, c.Top)
	factors := []float64{1, 2, 5}
	if top/bottom > 500 {
		factors = factors[:1]
	}
	for decade := math.Pow(10, math.Floor(math.Log10(bottom))); decade <= top*1.001; decade *= 10 {
		for _, f := range factors {
			if v := decade * f; v >= bottom*0.999 && v <= top*1.001 {
				c.Y = append(c.Y, Tick{y(v), fmt.Sprintf("%g", math.Round(v*1000)/1000)})
			}
		}
	}
	return y
}

// round returns the next of 1, 2, 2.5, 5, 10 times a power of ten.
func round(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 2.5, 5} {
		if v <= unit*f*1.0001 {
			return unit * f
		}
	}
	return unit * 10
}

// rule draws a level with its label above or below.
func (c *Chart) rule(class, label string, y float64, below bool) {
	at := y - 5
	if below {
		at = y + 14
	}
	c.Rules = append(c.Rules, Rule{class, y, label, tenth(at)})
}

// points formats a curve; values of 0 or less were not measured and are left out.
func points(x, y scale, sizes []int64, values []float64) string {
	var b strings.Builder
	for i, v := range values {
		if v > 0 {
			fmt.Fprintf(&b, "%g,%g ", x(float64(sizes[i])), y(v))
		}
	}
	return strings.TrimSpace(b.String())
}

// between formats the area between two curves as a polygon.
func between(x, y scale, sizes []int64, low, high []float64) string {
	up := strings.Fields(points(x, y, sizes, high))
	down := strings.Fields(points(x, y, sizes, low))
	for i := len(down) - 1; i >= 0; i-- {
		up = append(up, down[i])
	}
	return strings.Join(up, " ")
}
