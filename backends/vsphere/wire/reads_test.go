package wire

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// repeated are the methods that are called again after a broken connection, whatever the first call did. All others are left to the
// caller, who first reads the current state. Add only methods that change nothing, or make
// vCenter read a host once more.
var repeated = []string{
	"ContinueRetrievePropertiesEx", "CreateContainerView", "DestroyView", "FetchSoftwarePackages", "GetCurrentTime", "GetServiceContent",
	"HasPrivilegeOnEntities", "HasPrivilegeOnEntity", "QueryAvailableDvsSpec", "QueryConfigOptionEx", "QueryConfigTarget",
	"QueryDvsCheckCompatibility", "QueryEvents",
	"QueryLockdownExceptions", "QueryNetworkHint", "QueryOptions", "Refresh", "RefreshFirewall", "RefreshServices", "RetrievePropertiesEx",
	"RetrieveHardwareUptime", "RetrieveVendorDeviceGroupInfo",
}

// TestOnlyReadsAreRepeated goes through every method that the program's source calls.
func TestOnlyReadsAreRepeated(t *testing.T) {
	called := map[string]bool{}
	call := regexp.MustCompile(`\bmethods\.([A-Z]\w+)[(,]`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range call.FindAllSubmatch(text, -1) {
			called[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(called) < 60 {
		t.Fatalf("only %d methods are called: what was read is not the program", len(called))
	}
	for method := range called {
		soap := method
		switch method { // the library's own names for two
		case "GetServiceContent":
			soap = "RetrieveServiceContent"
		case "GetCurrentTime":
			soap = "CurrentTime"
		}
		if got, want := reads(soap), slices.Contains(repeated, method); got != want {
			t.Errorf("%s: repeated %v, want %v", method, got, want)
		}
	}
	for _, task := range []string{"QueryHostPatch_Task", "RetrieveKmipServersStatus_Task"} {
		if reads(task) {
			t.Errorf("%s starts a task and would be repeated", task)
		}
	}
}
