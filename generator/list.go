package generator

import (
	"go/constant"
	"go/token"
	"strconv"
	"strings"
	"time"
)

// A Rule is one limit as its directive declares it, defaults filled in.
// Expressions are as they are written there.
type Rule struct {
	Pos       token.Position // of the directive
	Package   string         // import path
	Interface string         // or the concrete type
	Methods   []string       // that it applies to
	Shared    bool           // it stands above the interface: the methods share it
	Name      string         // in errors, logs and metrics
	Prefix    string         // of the Redis key
	Key       []string       // its parts; none if all callers share one budget
	Max       string         // a number if it is constant
	Window    time.Duration
	Algorithm string

	Storage    string        // of a sliding log, else empty
	Resolution time.Duration // 0: exact
	Buckets    string        // of a sliding counter; empty for the runtime's default
	Burst      int64         // of a bucket; 0 for Max
	Cost       string
	When       string // empty: always
	Message    string // empty for the runtime's default
	Fail       string // empty for the limiter's
	Wait       time.Duration
	Mode       string
	Adaptive   []string // what the max adapts to
}

// List returns the rules of the packages that cfg names, in the order of their
// packages, files and lines. It writes nothing. Its error is a [Diagnostics]
// if the input is at fault.
func List(cfg Config) ([]Rule, error) {
	run, err := newRun(cfg)
	if err != nil {
		return nil, err
	}
	packages := run.load()
	run.parse(packages)
	checked := run.check(packages)
	if err := run.err(); err != nil {
		return nil, err
	}
	var rules []Rule
	for _, f := range checked {
		for _, w := range f.wrappers {
			for _, l := range w.limits {
				rules = append(rules, run.rule(f, w, l))
			}
		}
	}
	return rules, nil
}

func (r *run) rule(f *checkedFile, w *wrapper, l *limit) Rule {
	ru := l.rule
	pos := r.position(ru.pos)
	pos.Filename = shortPath(r.dir, pos.Filename)
	out := Rule{
		Pos: pos, Package: f.pkg.PkgPath, Interface: w.name, Name: l.name, Prefix: l.prefix,
		Max: ru.maxText(), Window: ru.window, Algorithm: ru.algorithm,
		Resolution: ru.resolution, Buckets: ru.buckets.String(), Burst: ru.burst,
		Cost: "1", Message: ru.message, Fail: ru.fail, Wait: ru.wait, Mode: "enforce", Adaptive: ru.adaptive,
	}
	if l.max != nil {
		out.Max = constant.ToInt(l.max.con).ExactString()
	}
	for _, part := range ru.key {
		out.Key = append(out.Key, part.text)
	}
	if ru.algorithm == slidingLog {
		out.Storage = ru.storageName()
	}
	if ru.cost != nil {
		out.Cost = ru.cost.text
	}
	if ru.when != nil {
		out.When = ru.when.text
	}
	if ru.mode != "" {
		out.Mode = ru.mode
	}
	for _, d := range w.decl.own {
		out.Shared = out.Shared || d.rule == ru
	}
	for _, m := range w.methods {
		for _, u := range m.uses {
			if u.limit == l {
				out.Methods = append(out.Methods, m.name)
			}
		}
	}
	return out
}

// String returns the buckets as a directive writes them, or "".
func (b buckets) String() string {
	switch {
	case b.adaptive:
		return "auto"
	case b.coarse == 0:
		return ""
	case b.fine == 0:
		return strconv.Itoa(b.coarse)
	}
	return strconv.Itoa(b.coarse) + "x" + strconv.Itoa(b.fine)
}

// Limit says in a few words how many calls are admitted: 5 per 10s.
func (r Rule) Limit() string {
	text := r.Max + " per " + shortDuration(r.Window)
	var extras []string
	if r.Algorithm != slidingLog {
		extras = append(extras, r.Algorithm)
	}
	if len(r.Adaptive) > 0 {
		extras = append(extras, "adaptive")
	}
	if r.Mode != "enforce" {
		extras = append(extras, r.Mode)
	}
	if len(extras) > 0 {
		text += ", " + strings.Join(extras, ", ")
	}
	return text
}
