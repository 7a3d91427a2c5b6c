// Package ratehttp tells HTTP clients what a limiter has decided about their
// requests, and limits handlers that have no directive.
//
//   - [Middleware] goes around a server's handler once. It writes the fields
//     RateLimit-Policy and RateLimit for the limits that a request met, and knows
//     the client's address, see [ClientIP].
//   - [Error] answers a request whose call was refused. [Deny] does the same in
//     generated code.
//   - A [RequestLimit] limits a handler by itself.
//
// Nothing here is needed for a limit to hold. A middleware that is missing, or that
// finds a header it cannot read, makes an answer poorer and admits nobody.
package ratehttp
