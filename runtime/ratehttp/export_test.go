package ratehttp

import "testing"

// SetStandard sets the options of requests that pass no middleware, for one test.
func SetStandard(t *testing.T, opts ...Option) {
	old := standard
	standard = newConfig(opts)
	t.Cleanup(func() { standard = old })
}
