// Package rateclient keeps calls that go out to limits that somebody else sets.
package rateclient
