package expr

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
)

// blankMarks makes Go of an expression without moving a byte: #id becomes id
// after a blank, #0 becomes _0. It returns the offsets of these identifiers,
// or the offset of a # that stands before no name.
func blankMarks(text string) (string, map[int]bool, int) {
	out, marks := []byte(text), map[int]bool{}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '`', '\'':
			if n := directive.QuoteEnd(text[i:]); n > 0 {
				i += n - 1
			}
		case '#':
			c, _ := utf8.DecodeRuneInString(text[i+1:])
			switch {
			case i+1 < len(text) && c >= '0' && c <= '9':
				out[i] = '_'
				marks[i] = true
			case i+1 < len(text) && (c == '_' || unicode.IsLetter(c)):
				out[i] = ' '
				marks[i+1] = true
			default:
				return "", nil, i
			}
		}
	}
	return string(out), marks, -1
}

// bindParams finds the parameters that the marked identifiers mean and gives
// these names that no Go identifier has.
func (s *Scope) bindParams(e *Expr, marks map[int]bool, m *Signature, report diag.Func) bool {
	ok := true
	ast.Inspect(e.Node, func(n ast.Node) bool {
		id, isIdent := n.(*ast.Ident)
		if !isIdent || !marks[int(id.Pos()-e.base)] {
			return true
		}
		name := id.Name
		i := slices.IndexFunc(m.Params, func(p *Param) bool { return p.Source == name && name != "_" })
		if digits, isNumber := strings.CutPrefix(name, "_"); isNumber && isDigits(digits) && e.Source.Text[id.Pos()-e.base] == '#' {
			name = digits
			if n, err := strconv.Atoi(digits); err == nil && n < len(m.Params) {
				i = n
			}
		}
		if i < 0 {
			var known []string
			for _, p := range m.Params {
				if p.Source != "" && p.Source != "_" {
					known = append(known, "#"+p.Source)
				}
			}
			near := directive.Nearest("#"+name, known)
			hint := ""
			switch {
			case near != "" && !isDigits(name):
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			case len(m.Params) == 0:
				near, hint = "", ": it has none"
			case len(known) == 0:
				near, hint = "", ": its parameters have no names, write #0 for the first"
			default:
				near, hint = "", ": it has "+strings.Join(known, ", ")
			}
			report(e.at(id.Pos()), "method %s has no parameter #%s%s", m.Name, name, hint).Over("#" + name).ReplaceBy(near)
			ok = false
			return true
		}
		id.Name = "#" + name
		e.Params[id] = m.Params[i]
		return true
	})
	return ok
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// scope makes a scope like that of the source file in which the parameters
// have their marked names, and returns a position inside of it.
func (s *Scope) scope(file *token.File, e *Expr) token.Pos {
	pkg := s.pkg
	scope := types.NewScope(pkg.Scope(), token.Pos(file.Base()), token.Pos(file.Base()+file.Size()+1), "directive")
	for _, name := range s.names.Names() {
		scope.Insert(s.names.Lookup(name))
	}
	for _, p := range s.extra {
		scope.Insert(p)
	}
	for id, p := range e.Params {
		scope.Insert(types.NewParam(token.NoPos, pkg, id.Name, p.Type))
	}
	return token.Pos(file.Base())
}
