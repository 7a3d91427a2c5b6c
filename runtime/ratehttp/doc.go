// Package ratehttp reports rate-limit decisions to HTTP clients, and limits
// handlers without directives.
//
//   - [Middleware] goes around a server's handler once. It writes the fields
//     RateLimit-Policy and RateLimit for the limits that a request met, answers a
//     refused request whose handler says nothing better, and knows the client's address, see [ClientIP].
//   - [Error] answers a request whose call was refused, where a handler would answer something
//     else. [Deny] does the same in generated code.
//   - A [RequestLimit] limits a handler by itself.
//
// A server wraps its handler, and a handler that calls a limited service passes its error on:
//
//	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
//		if err := orders.Place(r.Context(), r.FormValue("item")); !ratehttp.Error(w, r, err) && err != nil {
//			http.Error(w, "internal error", http.StatusInternalServerError)
//		}
//	})
//	http.ListenAndServe(":8080", ratehttp.Middleware()(mux))
//
// Limits work without this package. If Middleware is missing, answers lack
// fields; no more calls are admitted.
package ratehttp
