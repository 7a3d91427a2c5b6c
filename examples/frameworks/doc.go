// Package frameworks is a module of small programs, each on a framework that people
// use. They show that a call which a limit refuses reaches its client with the right
// status, and with nothing but what docs/frameworks.md says.
//
// They are a module of their own, because rategen must not depend on frameworks. What
// go generate writes is not in the repository: run it first.
package frameworks
