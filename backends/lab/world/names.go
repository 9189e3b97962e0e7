package world

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// MAC returns the generated MAC address of adapter n of the VM with that index.
func MAC(vm, n int) string {
	return fmt.Sprintf("00:50:56:%02x:%02x:%02x", 0x80+n%0x40, vm>>8&0xff, vm&0xff)
}

// escaper escapes names as vCenter does: / \ and % are stored escaped (API reference, ManagedEntity.name).
var escaper = strings.NewReplacer("%", "%25", "/", "%2f", `\`, "%5c")

// Escaped returns a name as vCenter stores it.
func Escaped(name string) string { return escaper.Replace(name) }

// Unescaped returns a name as the user typed it.
func Unescaped(name string) string {
	return strings.NewReplacer("%25", "%", "%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`).Replace(name)
}

// UUID returns the UUID of object i of a kind. It is deterministic: version 4, variant 1 (RFC 9562, section 5.4).
func UUID(kind string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", kind, i))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// SwitchUUID returns the UUID of a DVS, in vCenter's format.
func SwitchUUID(name string) string {
	u := UUID("dvs/"+name, 0)
	var pairs []string
	for hex := range slices.Chunk([]byte(strings.ReplaceAll(u, "-", "")), 2) {
		pairs = append(pairs, string(hex))
	}
	return strings.Join(pairs[:8], " ") + "-" + strings.Join(pairs[8:16], " ")
}
