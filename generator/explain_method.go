package generator

import (
	"slices"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/internal/algorithm"
)

// withoutContext says what methods without a context miss.
func withoutContext(methods []*model.Method) []string {
	names := namesOf(methods, func(m *model.Method) bool { return !m.HasContext() })
	if names == "" {
		return nil
	}
	return []string{"Adapters of HTTP and gRPC do not learn of it: there is no context in " + names + "."}
}

// earlyReturns says which methods give a permit back before their result is used, or "".
func earlyReturns(r *model.Rule, methods []*model.Method) string {
	if !r.Plain().Is(algorithm.Lends) {
		return ""
	}
	names := namesOf(methods, (*model.Method).ReturnsStream)
	if names == "" {
		return ""
	}
	return "The permit of " + names + " is back once the method returns, and not when what it returns has been read."
}

// namesOf lists the names of some methods.
func namesOf(methods []*model.Method, some func(*model.Method) bool) string {
	var names []string
	for _, m := range methods {
		if some(m) {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return directive.List(names, "and")
}
