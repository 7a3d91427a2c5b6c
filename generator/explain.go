package generator

import (
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/model"
	"github.com/rategen/rategen/generator/internal/output"
)

// An Explanation says in words what one directive means.
type Explanation struct {
	Rule
	Topics []Topic
}

// A Topic is a part of an explanation. Its name is limit, key, refused, end, redis or
// failure; parts that a directive has nothing to say about are left out.
type Topic struct{ Name, Text string }

// Explain explains the directives at a line of a file, which is relative to cfg.Dir.
// The line is that of a directive, or one of the declaration of a method, its comment
// included: all limits of the method are explained then. At another line of an interface
// those that its methods share are explained. cfg.Patterns is not used.
//
// The error is a [Diagnostics] if the input is at fault. If there is no directive at
// the line it names the nearest one.
func Explain(cfg Config, file string, line int) ([]Explanation, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(cfg.Dir, file)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("nothing to explain: %w", err)
	}
	if len(content) == 0 {
		return nil, fmt.Errorf("%s is empty: name a line of the file with the directives", file)
	}
	if output.IsOurs(content) {
		return nil, fmt.Errorf("%s is generated: name a line of the file with the directives", file)
	}
	report := diag.NewReporter(token.NewFileSet(), cfg.Dir)
	cfg.Dir, cfg.Patterns = filepath.Dir(path), []string{"."}
	program, wrapped, err := cfg.wrapped(report)
	if err != nil {
		return nil, err
	}
	at := &place{report: report, name: filepath.Base(path), line: line}
	var found []Explanation
	for _, f := range wrapped {
		for _, w := range f.Wrappers {
			for _, e := range at.explain(w) {
				e.Package = f.Pkg.PkgPath
				found = append(found, e)
			}
		}
	}
	for _, r := range policiesOf(program, usedBy(wrapped), report) {
		if at.isInFile(r.Pos) && r.Pos.Line == line {
			// The directives that use a policy say the rest.
			topics := topicsOf(r.settings, nil, directive.TopicLimit, directive.TopicRedis, directive.TopicFailure)
			found = append(found, Explanation{Rule: r.Rule, Topics: topics})
		}
	}
	if len(found) == 0 {
		return nil, at.noDirective(file, wrapped)
	}
	return found, nil
}

// A place is the line that is to be explained.
type place struct {
	report *diag.Reporter
	name   string // of the file: its directory is all that was loaded
	line   int
	empty  string // the method at the line, if it has no limits
}

// explain explains those rules of a wrapper that the line names.
func (p *place) explain(w *model.Wrapper) []Explanation {
	for _, r := range w.Rules {
		if at := p.position(r.Pos); p.isInFile(at) && at.Line == p.line {
			return []Explanation{p.explanation(w, r, limitedBy(w, r))}
		}
	}
	var all []Explanation
	for _, m := range w.Methods {
		if !p.declares(w, m) {
			continue
		}
		for _, l := range m.Limits {
			all = append(all, p.explanation(w, l.Rule, []*model.Method{m}))
		}
		if p.empty == "" && len(all) == 0 {
			p.empty = w.Name + "." + m.Name
		}
		return all
	}
	if p.containsLine(w.Decl.Spec.Name.Pos(), w.Decl.Spec.Name.End()) {
		for _, r := range w.Rules {
			if w.IsShared(r) {
				all = append(all, p.explanation(w, r, limitedBy(w, r)))
			}
		}
	}
	return all
}

// explanation explains a rule, as it applies to methods.
func (p *place) explanation(w *model.Wrapper, r *model.Rule, methods []*model.Method) Explanation {
	e := Explanation{Rule: ruleOf(w, r)}
	e.Pos = p.report.Position(r.Pos)
	more := map[directive.Topic][]string{
		directive.TopicKey:   {exampleKey(r, methods)},
		directive.TopicRedis: {"The key expires once it has no effect any more."},
	}
	if r.Refuses() {
		more[directive.TopicRefusal] = append(answers(r, methods), withoutContext(methods)...)
	}
	if text := earlyReturns(r, methods); text != "" {
		more[directive.TopicEnd] = append(more[directive.TopicEnd], text)
	}
	e.Topics = topicsOf(resolve(r), more, directive.Topics...)
	return e
}

// topicsOf says what options mean, and more.
func topicsOf(s *directive.Settings, more map[directive.Topic][]string, about ...directive.Topic) []Topic {
	var topics []Topic
	for _, topic := range about {
		if sentences := append(s.Explain(topic), more[topic]...); len(sentences) > 0 {
			topics = append(topics, Topic{string(topic), strings.Join(sentences, " ")})
		}
	}
	return topics
}

// limitedBy returns the methods that a rule limits.
func limitedBy(w *model.Wrapper, r *model.Rule) []*model.Method {
	return slices.DeleteFunc(slices.Clone(w.Methods), func(m *model.Method) bool {
		return !slices.ContainsFunc(m.Limits, func(l *model.Limit) bool { return l.Rule == r })
	})
}

// declares reports whether the line belongs to the declaration of a method.
func (p *place) declares(w *model.Wrapper, m *model.Method) bool {
	from, to := w.Decl.MethodRange(m.Name)
	return from.IsValid() && p.containsLine(from, to)
}

// containsLine reports whether the line is one from a position to another.
func (p *place) containsLine(from, to token.Pos) bool {
	first, last := p.position(from), p.position(to)
	return p.isInFile(first) && first.Line <= p.line && p.line <= last.Line
}

// position is like [diag.Reporter.Position] and ignores //line comments: the line is one
// of the file itself.
func (p *place) position(pos token.Pos) token.Position {
	return p.report.Fset.PositionFor(pos, false)
}

// isInFile reports whether the file holds a position.
func (p *place) isInFile(at token.Position) bool { return filepath.Base(at.Filename) == p.name }

// noDirective says that there is no directive at the line, and which one is nearest.
func (p *place) noDirective(file string, files []*model.File) error {
	nearest, distance := "", -1
	for _, f := range files {
		for _, w := range f.Wrappers {
			for _, r := range w.Rules {
				at := p.position(r.Pos)
				if n := max(at.Line-p.line, p.line-at.Line); p.isInFile(at) && (distance < 0 || n < distance) {
					nearest, distance = fmt.Sprintf("%d, which is %s", at.Line, r.Name), n
				}
			}
		}
	}
	what := fmt.Sprintf("%s:%d: there is no directive and no limited method", file, p.line)
	if p.empty != "" {
		what = fmt.Sprintf("%s:%d: %s has no limits", file, p.line, p.empty)
	}
	if distance < 0 {
		return fmt.Errorf("%s; the file declares no limit in this build: write %smax=100 above a method of an interface, and see -tags if the file has build constraints", what, directive.Prefix)
	}
	return fmt.Errorf("%s; the nearest directive is at line %s", what, nearest)
}
