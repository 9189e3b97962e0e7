package mlx5

import "github.com/rdma-setup/rdma-setup/backends"

// Advisories returns NVIDIA's published firmware vulnerabilities that a user of a VF can exploit: security bulletins 5699 of
// 2026-06-30 and 5847 of 2026-09-29 (github.com/NVIDIA/product-security, 2026/5699 and 2026/5847). ConnectX-6 DE is left out: its
// PCI device id is not known for certain. Bulletin 5699 names only ConnectX-4, ConnectX-5 and ConnectX-6 for CVE-2025-23351.
func (Family) Advisories() []backends.Advisory {
	type fixed = map[int]int
	all := fixed{35: 8002, 39: 8002, 43: 8002, 46: 3008}
	both := map[string]map[int]int{
		"101d": all, "101f": all, "1021": all, "1023": {46: 3008}, "a2d6": all, "a2dc": {39: 8002, 43: 8002, 46: 3008},
	}
	first := map[string]map[int]int{
		"1013": {28: 4702}, "1015": {32: 1908}, "1017": {35: 8002}, "1019": {35: 8002}, "101b": {35: 8002, 39: 8002, 43: 8002},
	}
	for id, f := range both {
		first[id] = f
	}
	later := fixed{39: 5124, 43: 4100, 47: 1020}
	const june, september = "NVIDIA security bulletin 5699", "NVIDIA security bulletin 5847"
	return []backends.Advisory{
		{Bulletin: june, Date: "2026-06-30", CVE: "CVE-2025-23351", Score: 9.0, Impact: "code execution on the card", Fixed: first},
		{Bulletin: june, Date: "2026-06-30", CVE: "CVE-2025-23350", Score: 9.0, Impact: "code execution on the card", Fixed: both},
		{Bulletin: september, Date: "2026-09-29", CVE: "CVE-2025-33207", Score: 6.8, Impact: "denial of service", Fixed: map[string]map[int]int{
			"1017": {35: 8008}, "1019": {35: 8008}, "101b": {39: 5124, 43: 4100}, "101d": later, "101f": later, "a2d6": later,
		}},
	}
}
