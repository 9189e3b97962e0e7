package firmware

// Tools returns the parsers of this package by tool id.
func Tools() map[string]func(string) any {
	return map[string]func(string) any{
		"flint":        func(s string) any { return Flint(s) },
		"mlxconfig":    func(s string) any { return MLXConfig(s) },
		"mlxfwmanager": func(s string) any { return MLXFWManager(s) },
		"mlxfwreset":   func(s string) any { return MLXFWReset(s) },
		"mst":          func(s string) any { return MST(s) },
	}
}
