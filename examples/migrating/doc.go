// Package migrating tries what docs/migrating.md shows: the same limit by another
// library and by a directive. The tests here ask both for more than they allow. What go
// generate writes is not in the repository: run it first.
package migrating
