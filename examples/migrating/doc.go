// Package migrating tries what docs/migrating.md shows: the same limit by another
// library and by a directive. Each package has both, and the tests here ask them for
// more than they allow.
package migrating
