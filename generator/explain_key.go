package generator

import (
	"fmt"
	"go/constant"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
)

// exampleKey says what the Redis key of a call is.
func exampleKey(r *model.Rule, methods []*model.Method) string {
	var parts, given []string
	if limit := limitOn(methods, r); limit != nil {
		for _, part := range limit.Parts {
			text := example(part, len(given))
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

// example returns a value that a part of a key may have; n parts before it have others.
func example(part *expr.KeyPart, n int) string {
	if v := part.Expr.Const; v != nil {
		if v.Kind() == constant.String {
			return constant.StringVal(v)
		}
		return v.ExactString()
	}
	if part.Add == "AddBool" {
		return "true"
	}
	return strconv.Itoa(1001 + n)
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
	if r.Plain().Is(algorithm.Lends) {
		retry = "whose RetryAfter is an estimate"
	} else if r.Divides() {
		retry = "whose RetryAfter is the time until the call of any share would be admitted if nobody else called"
	}
	message := r.Message()
	if message == "" {
		message = spec.DefaultMessage
	}
	w, _ := m.Handler()
	l := limitOn([]*model.Method{m}, r)
	if l != nil && l.Deny != nil {
		return "The method then returns what " + l.DenyText() + " gives."
	}
	if w != nil {
		return fmt.Sprintf("The request is then answered with 429, Retry-After and the text %q.", message)
	}
	return fmt.Sprintf("The method then returns zero values and a *runtime.LimitedError with the text %q, %s.", message, retry)
}
