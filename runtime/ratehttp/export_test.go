package ratehttp

// Codes returns the codes of all checks.
func Codes() (codes []string) {
	for _, f := range findings {
		codes = append(codes, f.code)
	}
	return codes
}
