package checks

// Catalogue gives all checks, in the order of the chain.
func Catalogue() []Check {
	return nil
}
