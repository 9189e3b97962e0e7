package answers

import (
	"fmt"
	"strconv"
)

// Gbps is a bandwidth in Gb/s, written as a plain number; 0 means not set.
type Gbps float64

// mostGbps is more than any port supports.
const mostGbps = 10_000

// Mbps returns the bandwidth in Mb/s.
func (g Gbps) Mbps() int { return int(float64(g)*1000 + 0.5) }

// MarshalText writes the number, "" for 0.
func (g Gbps) MarshalText() ([]byte, error) {
	if g == 0 {
		return nil, nil
	}
	return []byte(strconv.FormatFloat(float64(g), 'f', -1, 64)), nil
}

// UnmarshalText parses the output of MarshalText.
func (g *Gbps) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*g = 0
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(v >= 0.001 && v <= mostGbps) {
		return fmt.Errorf("%q is not a bandwidth in Gb/s", b)
	}
	*g = Gbps(v)
	return nil
}
