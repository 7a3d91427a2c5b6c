package generator

import (
	"go/constant"
	"go/token"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/model"
)

// A Rule is one limit as its directive declares it.
type Rule struct {
	Pos       token.Position // of the directive
	Package   string         // import path
	Interface string         // or the concrete type
	Methods   []string       // that it applies to
	Policy    bool           // it is a policy: Interface and Methods are empty
	UsedBy    []string       // of a policy: what uses it, as in orders.Orders.List
	Shared    bool           // it stands above the interface: the methods share it
	Name      string         // in errors, logs and metrics
	Key       []string       // its parts; none if all callers share one budget
	// Limit says in a few words how many calls are admitted: 5 per 10s.
	Limit string
	// Options are the options of the directive, defaults filled in, in the
	// order of [Options]. One is left out if it has no value without being
	// given.
	Options []Setting
}

// A Setting is the value of an option: a string, an int64 or a []string.
// Expressions are as they are written, numbers as they are evaluated.
type Setting struct {
	Option string
	Value  any
}

// List returns the rules of the packages that cfg names, in the order of their
// packages, files and lines. It writes nothing. Its error is a [Diagnostics]
// if the input is at fault.
func List(cfg Config) ([]Rule, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	report := diag.NewReporter(token.NewFileSet(), cfg.Dir)
	program, wrapped, err := cfg.wrapped(report)
	if err != nil {
		return nil, err
	}
	var rules []Rule
	for _, p := range policiesOf(program, usedBy(wrapped), report) {
		rules = append(rules, p.Rule)
	}
	for _, f := range wrapped {
		for _, w := range f.Wrappers {
			for _, r := range w.Rules {
				rule := ruleOf(w, r)
				rule.Pos, rule.Package = report.Position(r.Pos), f.Pkg.PkgPath
				rules = append(rules, rule)
			}
		}
	}
	return rules, nil
}

// usedBy returns what uses policies.
func usedBy(files []*model.File) map[*directive.Policy][]string {
	found := map[*directive.Policy][]string{}
	for _, f := range files {
		for _, w := range f.Wrappers {
			for _, r := range w.Rules {
				if p := r.Policy(); p != nil {
					found[p] = append(found[p], r.Declared)
				}
			}
		}
	}
	return found
}

// A policy is a policy as a rule.
type policy struct {
	Rule
	settings *directive.Settings
}

// policiesOf describes the policies of the packages.
func policiesOf(program *load.Program, usedBy map[*directive.Policy][]string, report *diag.Reporter) []policy {
	var policies []policy
	for _, src := range program.Policies() {
		for _, p := range src.Policies {
			name := src.Syntax.Name.Name + "." + p.Name
			settings := p.Settings.With("name", name)
			if settings.Prefix() == "" {
				settings = settings.With("prefix", "rate_limit:"+name+":")
			}
			r := &model.Rule{Settings: settings, Name: name}
			rule := Rule{Pos: report.Position(p.Settings.Pos), Package: src.PkgPath, Name: name, Limit: r.Brief(), Policy: true, UsedBy: usedBy[p]}
			for _, option := range r.Shown() {
				rule.Options = append(rule.Options, Setting{option.Name, option.Value})
			}
			policies = append(policies, policy{rule, settings})
		}
	}
	return policies
}

// wrapped returns the files of the packages that cfg names with their wrappers, and
// writes nothing. The error is a [Diagnostics].
func (cfg Config) wrapped(report *diag.Reporter) (program *load.Program, wrapped []*model.File, err error) {
	defer report.Recover(token.Position{Filename: cfg.Dir}, func() { program, wrapped, err = nil, nil, diagnosticsOf(report) })
	program = load.List(cfg.load(), report)
	program.Parse()
	files := program.Check()
	builder := &model.Builder{Report: report, Outs: openOuts(program, report), ImportWay: program.ImportWay, Policies: program.PolicyPackages()}
	wrapped = builder.Build(files)
	if report.HasErrors() {
		return nil, nil, diagnosticsOf(report)
	}
	return program, wrapped, nil
}

// ruleOf describes a rule of a wrapper.
func ruleOf(w *model.Wrapper, r *model.Rule) Rule {
	resolved := resolve(r)
	rule := Rule{Interface: w.Name, Shared: w.IsShared(r), Name: r.Name, Limit: resolved.Brief()}
	for _, part := range r.Key() {
		rule.Key = append(rule.Key, part.Text)
	}
	for _, option := range resolved.Shown() {
		rule.Options = append(rule.Options, Setting{option.Name, option.Value})
	}
	for _, m := range limitedBy(w, r) {
		rule.Methods = append(rule.Methods, m.Name)
	}
	return rule
}

// resolve returns the settings of a rule with the names and numbers that it has.
func resolve(r *model.Rule) *directive.Settings {
	s := r.With("name", r.Name).With("prefix", r.Prefix)
	if r.Max != nil {
		s = s.With("max", directive.Value{Text: constant.ToInt(r.Max.Const).ExactString()})
	}
	return s
}
