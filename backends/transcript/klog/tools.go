package klog

// Tools returns the parsers of this package by tool id.
func Tools() map[string]func(string) any {
	return map[string]func(string) any{
		"dmesg":         func(s string) any { return Dmesg(s) },
		"vsphere_error": func(s string) any { return VSphereError(s) },
	}
}
