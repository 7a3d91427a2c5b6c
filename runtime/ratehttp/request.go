package ratehttp

import (
	"net/http"
	"strings"
)

// copyBack gives a request what a handler has set in a copy of it: the form, whose files the
// server removes, and the route, which layers outside of the handler tell of. It writes what
// differs alone, as the handler would have without the copy.
func copyBack(to, from *http.Request) {
	if from.MultipartForm != to.MultipartForm {
		to.MultipartForm = from.MultipartForm
	}
	if to.Form == nil && from.Form != nil {
		to.Form = from.Form
	}
	if to.PostForm == nil && from.PostForm != nil {
		to.PostForm = from.PostForm
	}
	if from.Pattern == to.Pattern {
		return
	}
	to.Pattern = from.Pattern
	for _, rest, more := strings.Cut(from.Pattern, "{"); more; _, rest, more = strings.Cut(rest, "{") {
		name := rest[:max(0, strings.IndexAny(rest, ":.}"))]
		if value := from.PathValue(name); value != to.PathValue(name) {
			to.SetPathValue(name, value)
		}
	}
}
