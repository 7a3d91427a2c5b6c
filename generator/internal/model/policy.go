package model

import (
	"github.com/rategen/rategen/generator/internal/diag"
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
	s.AdoptDefaults()
}

// completePolicies does so for the defaults of packages and then for their
// policies, each in the scope of its own file.
func (b *Builder) completePolicies() {
	scopes := map[*directive.File]*expr.Scope{}
	complete := func(src *directive.File, policies []*directive.Policy) {
		for _, p := range policies {
			pkg := b.Policies[src]
			if scopes[src] == nil {
				scopes[src] = expr.NewScope((&load.File{Pkg: pkg}).Sibling(src), pkg.Types, b.Report)
			}
			b.complete(p.Settings, scopes[src])
		}
	}
	for src := range b.Policies {
		complete(src, src.Defaults)
	}
	for src := range b.Policies {
		complete(src, src.Policies)
	}
}

// setConstants gives the Go constants of a directive their values.
func (b *Builder) setConstants(s *directive.Settings, scope *expr.Scope) {
	known := map[directive.Constant]int64{}
	for _, c := range s.Constants() {
		if x := scope.Constant(c.Option, c.Value, c.IsDuration); x != nil {
			known[c] = x.Int64()
			b.constants.Store(c, x)
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
					b.Report.Warn(diag.UnusedPolicy, p.Settings.Place("name"), "nothing uses the policy %s: remove it, or write use=%s in a directive", p.Name, p.Name).Mark(p.Name)
				}
			}
		}
	}
}
