// Package esxcli runs esxcli commands on the lab's world. The simulated vCenter returns their answers as data; the lab's ESXi shells
// have no esxcli.
package esxcli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A Field is one value of a row. Name is the title of the column ("Paired Uplink"); the key in the API is the title without
// spaces and hyphens. Sub contains nested fields instead of a value.
type Field struct {
	Name, Value string
	Sub         []Field
	List        []string // if not nil, the values of a list
}

// An Answer is the result of a command.
type Answer struct {
	Type    string // type name of the rows in the API, "RDMADevice"
	Rows    [][]Field
	Message bool // the answer is Text, not rows
	Text    string
	Single  bool // one object, not an array of them
}

// A Param is one option of a command.
type Param struct {
	Name  string // name in the API: nic-name is "nicname"
	Long  string // long option, nic-name
	Short string // short option, n
	Flag  bool   // takes no value
}

// Args contains the values of options by Param.Name. The values of a list are joined by commas. Flags have the value "true".
type Args map[string]string

// A Command is one command of esxcli.
type Command struct {
	Path   []string // command words, network nic list
	Params []Param
	Writes bool
	Run    func(w *world.World, host string, args Args) (Answer, error)
}

// Find returns the command at the beginning of the words and the number of words in its name, or nil if there is none.
func Find(words []string) (*Command, int) {
	for _, c := range Commands() {
		if len(words) >= len(c.Path) && slices.Equal(words[:len(c.Path)], c.Path) {
			return &c, len(c.Path)
		}
	}
	return nil, 0
}

// A Refusal is an error with a message of ESXi.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return Refusal(fmt.Sprintf(format, args...)) }

// Key returns the name of a field in the API.
func (f Field) Key() string { return joined.Replace(f.Name) }

var joined = strings.NewReplacer(" ", "", "-", "", "/", "")
