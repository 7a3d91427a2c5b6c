// Package ratepage is a page on which an operator sees the limits of a program as
// they are now, and may change them: an [http.Handler] that the program mounts
// where it likes.
//
//	page := ratepage.New()
//	limiter := runtime.New(store, runtime.WithObserver(page.Observer()))
//	mux.Handle("/limits/", http.StripPrefix("/limits", page))
//
// The page shows rules with what holds for them, rates of admitted, refused and
// undecided calls, the state of Redis, and overrides; and it looks up what is left
// for one key, without charging it. While nobody looks at it the page costs a
// counter for each decision.
//
// It has no log-in of its own. Mount it where operators alone can reach it, or
// behind the program's own authentication. It changes nothing unless [WithActions]
// allows that, and shows no key of a caller unless [WithKeys] does.
package ratepage
