// Package analyzer checks //ratelimit: directives without generating code, for
// editors, go vet and linters.
//
// The command cmd/rategen-vet runs it alone or for go vet -vettool.
package analyzer

import (
	"go/token"

	"github.com/rategen/rategen/generator"
	"golang.org/x/tools/go/analysis"
)

// Analyzer reports what rategen would report, errors and warnings, with a fix
// where the remedy is mechanical. The category of a diagnostic is "error", or the code of
// a warning.
var Analyzer = &analysis.Analyzer{
	Name: "ratelimit",
	Doc: `check //ratelimit: directives

A directive that is misspelt or stands in the wrong place limits nothing, and
one whose expressions do not compile keeps code from being generated. Limits
that are correct and perhaps not meant are reported as well.`,
	URL:              "https://pkg.go.dev/github.com/rategen/rategen/cmd/rategen",
	RunDespiteErrors: true,
	Run:              run,
}

func run(pass *analysis.Pass) (any, error) {
	files := map[string]*token.File{}
	for _, f := range pass.Files {
		file := pass.Fset.File(f.FileStart)
		files[file.Name()] = file
	}
	pos := func(p token.Position) token.Pos {
		if f := files[p.Filename]; f != nil && p.Offset <= f.Size() {
			return f.Pos(p.Offset)
		}
		return token.NoPos
	}
	for _, d := range generator.Vet(generator.Package{Fset: pass.Fset, Files: pass.Files, Types: pass.Pkg, Info: pass.TypesInfo}) {
		out := analysis.Diagnostic{Pos: pos(d.Pos), End: pos(d.End), Category: string(d.Severity), Message: d.Message}
		if d.Code != "" {
			out.Category, out.URL, out.Message = d.Code, pass.Analyzer.URL+"#hdr-Warnings", d.Message+" ["+d.Code+"]"
		}
		if !out.Pos.IsValid() {
			continue
		}
		if fix := d.Fix; fix != nil {
			out.SuggestedFixes = []analysis.SuggestedFix{{
				Message:   fix.Message,
				TextEdits: []analysis.TextEdit{{Pos: pos(fix.Pos), End: pos(fix.End), NewText: []byte(fix.NewText)}},
			}}
		}
		pass.Report(out)
	}
	return nil, nil
}
