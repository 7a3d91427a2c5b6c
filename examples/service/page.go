package main

import (
	"log/slog"
	"net/http"

	"github.com/rategen/rategen/runtime/ratepage"
)

// newPage returns the page of the service's limits. A real service lets nobody
// change anything whom it has not authenticated.
func newPage(actions bool, logger *slog.Logger) *ratepage.Page {
	options := []ratepage.Option{ratepage.WithKeys(), ratepage.WithLogger(logger)}
	if actions {
		everybody := func(r *http.Request, _ ratepage.Action) (string, error) { return "somebody", nil }
		options = append(options, ratepage.WithActions(everybody, nil))
	}
	return ratepage.New(options...)
}

// withPage serves a page at /limits/, and everything else by next.
func withPage(next http.Handler, page *ratepage.Page) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/limits/", http.StripPrefix("/limits", page))
	mux.Handle("/", next)
	return mux
}
