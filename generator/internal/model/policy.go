package model

import (
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/load"
)

// complete gives a directive what its policy says and what its constants are, and
// reports options that do not go together then.
func (b *Builder) complete(s *directive.Settings, scope *expr.Scope) {
	deferred := len(s.Constants()) > 0 || s.Use() != ""
	if s.Policy() != nil {
		s.Adopt()
	}
	b.setConstants(s, scope)
	if deferred {
		s.CheckTogether(b.Report.At)
	}
}

// completePolicies does so for the policies, each in the scope of its own file.
func (b *Builder) completePolicies() {
	for src, pkg := range b.Policies {
		var scope *expr.Scope
		for _, p := range src.Policies {
			if len(p.Settings.Constants()) == 0 {
				continue
			}
			if scope == nil {
				scope = expr.NewScope((&load.File{Pkg: pkg}).Sibling(src), pkg.Types, b.Report)
			}
			b.complete(p.Settings, scope)
		}
	}
}

// setConstants gives the Go constants of a directive their values.
func (b *Builder) setConstants(s *directive.Settings, scope *expr.Scope) {
	known := map[directive.Constant]int64{}
	for _, c := range s.Constants() {
		if n, ok := scope.Constant(c.Option, c.Value, c.IsDuration); ok {
			known[c] = n
		}
	}
	s.SetConstants(known, b.Report.At)
}

// warnUnused warns of policies that nothing uses, in packages that have limits. A
// package of policies alone is there for others.
func (b *Builder) warnUnused(files []*File) {
	seen := map[*directive.File]bool{}
	for _, f := range files {
		for _, src := range f.Policies {
			if seen[src] {
				continue
			}
			seen[src] = true
			for _, p := range src.Policies {
				if p.Users == 0 {
					b.Report.Warn(p.Settings.Place("name"), "nothing uses the policy %s: remove it, or write use=%s in a directive", p.Name, p.Name).Over(p.Name)
				}
			}
		}
	}
}
