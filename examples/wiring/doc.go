// Package wiring tries what docs/wiring.md shows: ways to put a limited service together,
// to replace it in tests, and to change its limits while it runs.
package wiring
