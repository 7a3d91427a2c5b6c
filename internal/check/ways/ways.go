// Package ways counts the files that a call enters, and checks that files.md lists them
// all. Its test executes calls with coverage, see the command way.
package ways

// Calls is how many calls of one kind are executed. A file is on their way if most of them
// enter it: where timers run beside them, single ones differ.
const Calls = 9
