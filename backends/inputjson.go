package backends

import "fmt"

// A JSONLimit bounds the structure of a JSON text in addition to its size: two bytes can encode a list element that takes
// hundreds of bytes in memory. 1,000 hosts with 10,000 VMs and their guests need less than half of InventoryJSON.
type JSONLimit struct {
	Rows    int // elements or members of one list or object at the top or the second level
	Objects int // objects, lists and nulls in total
	Values  int // values in total
}

// The limits for bundles and baselines, and for saved plans, which list every change of every target.
var (
	InventoryJSON = JSONLimit{Rows: 20_000, Objects: 400_000, Values: 3_000_000}
	PlanJSON      = JSONLimit{Rows: 250_000, Objects: 600_000, Values: 3_000_000}
)

// Check counts without decoding. It does not detect invalid JSON; the decoder does.
func (l JSONLimit) Check(text []byte) error {
	var rows [3]int
	depth, objects, values := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			objects++
			values++
			if depth < len(rows) {
				rows[depth] = 1
			}
		case '}', ']':
			depth--
		case 'n':
			objects++
		case ',':
			values++
			if depth > 0 && depth < len(rows) {
				if rows[depth]++; rows[depth] > l.Rows {
					return fmt.Errorf("%w: a list has more than %d elements", ErrTooLarge, l.Rows)
				}
			}
		}
		if objects > l.Objects || values > l.Values {
			return fmt.Errorf("%w: it has more than %d objects or %d values", ErrTooLarge, l.Objects, l.Values)
		}
	}
	return nil
}
