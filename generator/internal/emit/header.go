package emit

import (
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
)

// A header is the head of an if statement.
type header struct {
	init       []jen.Code // the statement that declares its variable, if any
	conditions []string   // all of them
}

func (h header) code() *jen.Statement {
	return jen.If(append(h.init, jen.Op(strings.Join(h.conditions, " && ")))...)
}

// nested writes code within if statements, the first outermost.
func nested(headers []header, code []jen.Code) []jen.Code {
	for i := len(headers) - 1; i >= 0; i-- {
		code = []jen.Code{headers[i].code().Block(code...)}
	}
	return code
}

// evaluable returns the ifs in which an expression can be evaluated, and if it
// is a condition holds. The variable applies must be true first, if it is not "".
func (a *admission) evaluable(x *expr.Expr, isCondition bool, applies string) []header {
	text := a.exprString(x, a.names)
	var headers []header
	if applies != "" {
		headers = []header{{conditions: []string{applies}}}
	}
	for _, g := range x.Guards {
		init, subject := a.guardSubject(g, x)
		condition := subject + " != nil"
		if g.Index != "" {
			condition = "len(" + subject + ") > " + g.Index
		}
		if len(init) > 0 || len(headers) == 0 {
			headers = append(headers, header{init: init})
		}
		last := &headers[len(headers)-1]
		last.conditions = append(last.conditions, condition)
	}
	if !isCondition {
		return headers
	}
	if len(headers) == 0 {
		return []header{{conditions: []string{text}}}
	}
	last := &headers[len(headers)-1]
	last.conditions = append(last.conditions, parenthesise(x.Node, text))
	return headers
}
