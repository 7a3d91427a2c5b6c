package emit

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"strconv"
	"time"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
)

// code writes the value of a [directive.Field].
func (e *emitter) code(v any) jen.Code {
	switch v := v.(type) {
	case time.Duration:
		return e.duration(v)
	case int64:
		return jen.Op(strconv.FormatInt(v, 10))
	case directive.Name:
		return jen.Id(e.imports.name(v.PkgPath)).Dot(v.Name)
	case directive.Call:
		var args []jen.Code
		for _, arg := range v.Args {
			args = append(args, e.code(arg))
		}
		return e.code(v.Fun).(*jen.Statement).Call(args...)
	}
	return jen.Lit(v)
}

// constant writes a constant expression as an int64: a number as it is, a
// named constant by its name, so that the rule follows it.
func (e *emitter) constant(x *expr.Expr) string {
	named := false
	hidden := false // from the package that the code is written to
	x.EachOutside(func(_ *ast.Ident, obj types.Object) {
		hidden = hidden || expr.IsPackageLevel(obj) && obj.Pkg() != e.imports.own && !obj.Exported()
		_, isConst := obj.(*types.Const)
		_, isPkg := obj.(*types.PkgName)
		named = named || isConst || isPkg
	})
	if !named || hidden {
		return constant.ToInt(x.Const).ExactString()
	}
	text := e.text(x, nil)
	if b, ok := x.Type.(*types.Basic); ok && (b.Kind() == types.Int64 || b.Kind() == types.UntypedInt) {
		return text
	}
	return "int64(" + text + ")"
}

// duration writes a duration in its largest whole unit.
func (e *emitter) duration(d time.Duration) jen.Code {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}, {time.Microsecond, "Microsecond"}, {1, "Nanosecond"}} {
		if d%unit.size != 0 {
			continue
		}
		name := jen.Id(e.imports.name("time")).Dot(unit.name)
		if n := int64(d / unit.size); n > 1 {
			return jen.Op(fmt.Sprint(n)).Op("*").Add(name)
		}
		return name
	}
	return nil
}
