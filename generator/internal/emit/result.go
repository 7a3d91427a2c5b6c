package emit

import (
	"go/types"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/model"
)

func (e *emitter) results(m *model.Method) jen.Code {
	var results []jen.Code
	for v := range m.Type.Results().Variables() {
		results = append(results, e.imports.typeCode(v.Type()))
	}
	switch len(results) {
	case 0:
		return jen.Null()
	case 1:
		return results[0]
	}
	return jen.Params(results...)
}

// zeros returns the zero values of all results but the error.
func (e *emitter) zeros(m *model.Method) []string {
	if !m.ReturnsError() {
		return nil
	}
	var zeros []string
	for i := range m.Type.Results().Len() - 1 {
		zeros = append(zeros, e.zero(m.Type.Results().At(i).Type()))
	}
	return zeros
}

func (e *emitter) zero(t types.Type) string {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return "*new(" + e.imports.typeString(t) + ")"
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if u.Info()&types.IsBoolean != 0 {
			return "false"
		}
		if u.Info()&types.IsString != 0 {
			return `""`
		}
		if u.Info()&types.IsNumeric != 0 {
			return "0"
		}
	case *types.Struct, *types.Array:
		return e.imports.typeString(t) + "{}"
	}
	return "nil"
}
