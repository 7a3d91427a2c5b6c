package generator

import (
	"fmt"
	"go/constant"
	"go/types"
	"slices"
	"strings"
	"unicode"

	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/internal/spec"
)

// exampleKey says what the Redis key of a call is.
func exampleKey(r *model.Rule, methods []*model.Method) string {
	var parts, given []string
	if limit := limitOn(methods, r); limit != nil {
		for _, part := range limit.Parts {
			text := example(part)
			if part.Expr.Const == nil {
				given = append(given, part.Expr.Source.Text+" = "+text)
			}
			parts = append(parts, string(spec.AppendEscaped(nil, text)))
		}
	}
	key := r.Prefix + strings.Join(parts, ":") + r.KeyTag()
	if len(given) == 0 {
		return "The Redis key is " + key
	}
	return "With " + strings.Join(given, ", ") + " the Redis key is " + key
}

// limitOn returns the limit that a rule is on the first of methods.
func limitOn(methods []*model.Method, r *model.Rule) *model.Limit {
	for _, m := range methods {
		for _, l := range m.Limits {
			if l.Rule == r {
				return l
			}
		}
	}
	return nil
}

// examples are values of strings, by a word in the expression that gives them.
var examples = []struct{ word, value string }{
	{"mail", "ann@example.com"}, {"uuid", exampleUUID}, {"phone", "+15550100"}, {"addr", exampleIP}, {"ip", exampleIP},
	{"tenant", "acme"}, {"org", "acme"}, {"plan", "premium"}, {"user", "ann"}, {"login", "ann"}, {"account", "ann"}, {"name", "ann"},
}

const (
	exampleNumber = "1001"
	exampleIP     = "203.0.113.7"
	exampleUUID   = "6ba7b810-9dad-11d1-80b4-00c04fd430c8" // from RFC 4122
)

// example returns a value that a part of a key may have.
func example(part *expr.KeyPart) string {
	if v := part.Expr.Const; v != nil {
		if v.Kind() == constant.String {
			return constant.StringVal(v)
		}
		return v.ExactString()
	}
	switch part.Add {
	case "AddInt", "AddUint":
		return exampleNumber
	case "AddBool":
		return "true"
	}
	if named, ok := types.Unalias(part.Expr.Type).(*types.Named); ok {
		switch named.Obj().Name() {
		case "UUID":
			return exampleUUID
		case "Addr", "IP":
			return exampleIP
		}
	}
	// The last name that says something decides, as in #req.User.Email.
	words := strings.FieldsFunc(strings.ToLower(part.Expr.Source.Text), func(c rune) bool { return !unicode.IsLetter(c) })
	for _, word := range slices.Backward(words) {
		if strings.HasSuffix(word, "id") && word != "uuid" {
			break
		}
		for _, e := range examples {
			if strings.HasSuffix(word, e.word) {
				return e.value
			}
		}
	}
	return exampleNumber
}

// answers says what a refused call of methods returns.
func answers(r *model.Rule, methods []*model.Method) []string {
	var all []string
	for _, m := range methods {
		text := answer(r, m)
		if len(all) == 0 || all[len(all)-1] != text {
			all = append(all, text)
		}
	}
	if len(all) < 2 {
		return all
	}
	all = all[:0]
	for _, m := range methods {
		all = append(all, m.Name+": "+answer(r, m))
	}
	return all
}

// answer says what a refused call of a method returns.
func answer(r *model.Rule, m *model.Method) string {
	retry := "whose RetryAfter is the time until the call would be admitted if nobody else called"
	if r.Algorithm() == spec.Concurrency {
		retry = "whose RetryAfter is an estimate"
	}
	message := r.Message()
	if message == "" {
		message = spec.DefaultMessage
	}
	w, _ := m.Handler()
	l := limitOn([]*model.Method{m}, r)
	switch {
	case l != nil && l.Deny != nil:
		return "The method then returns what " + l.DenyText() + " gives."
	case w != nil:
		return fmt.Sprintf("The request is then answered with 429, Retry-After and the text %q.", message)
	}
	return fmt.Sprintf("The method then returns zero values and a *runtime.LimitedError with the text %q, %s.", message, retry)
}
