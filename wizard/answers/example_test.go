package answers_test

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// All errors are reported at once, with their position and the probable intention.
func ExampleLoad() {
	_, err := answers.Load(strings.NewReader("apiVersion: rdma-setup/v1\nmode: pvrmda\nnic: {sped: 100G}\n"), "site.yaml")
	for line := range strings.Lines(err.Error()) {
		fmt.Print(line)
	}
	// Output:
	// site.yaml:2:7: mode: "pvrmda" is not known (did you mean pvrdma?)
	// site.yaml:3:7: nic.sped: unknown key (did you mean speed?)
}

func ExampleNearest() {
	fmt.Println(answers.Nearest("rollbak", []string{"apply", "resume", "rollback"}))
	// Output: rollback
}
