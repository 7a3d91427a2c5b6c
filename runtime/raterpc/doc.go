// Package raterpc holds what gRPC and Connect servers do about rate limits in the
// same way: its options, limits by the names of methods, and the status of a call
// that was refused.
//
// Programs import [github.com/rategen/rategen/runtime/rategrpc] or
// [github.com/rategen/rategen/runtime/rateconnect], and this package for the
// options of either. An adapter for another RPC framework is written with [Server].
package raterpc
