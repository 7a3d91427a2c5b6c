package model

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
)

// Warn looks for limits that are correct and perhaps not meant. There is a way
// to say of each that it is, which the manual names with the warning.
func (b *Builder) Warn(files []*File) {
	if b.Report.HasErrors() {
		return // the limits are not all there
	}
	b.warnUnused(files)
	b.warnUneven(files)
	generated := map[*directive.File]bool{}
	for _, f := range files {
		for _, w := range f.Wrappers {
			for _, r := range w.Rules {
				b.warnLog(r)
				b.warnLine(r)
				b.warnBlock(r)
				b.warnLease(w, r)
				b.warnLapse(r)
			}
			b.warnDear(w)
			b.warnMeter(w)
			b.warnNilable(f, w)
			b.warnWait(f, w)
			b.warnGenerated(f, w, generated)
			b.warnUnlimited(f, w)
			b.warnShared(w)
			b.warnEmbedded(f, w)
			b.warnUnique(f, w)
			b.warnExtended(f, w)
			b.warnUnasked(w)
			b.warnEarly(f, w)
		}
	}
}

// warnLog warns of a sorted set that gets large, unless it was asked for.
func (b *Builder) warnLog(r *Rule) {
	if !r.Plain().Takes("storage") || r.Storage() != "" || r.Dynamic {
		return
	}
	n := r.most()
	if n <= algorithm.Few {
		return
	}
	v, bytes := r.Expr("max"), r.Plain().EventBytes
	b.Report.Warn(diag.LargeLog, v.Pos, "max: a log of %d events takes about %s of Redis memory for each key, %d bytes an event where up to %d events take %d: add storage=packed, or storage=zset if that is meant",
		n, byteSize(n*bytes[1]), bytes[1], algorithm.Few, bytes[0]).
		Mark(v.Tail(0)).Replace(r.End, 0, " storage=packed", "add storage=packed")
}

// dear is from which cost on a call is dear: Redis could decide eight others meanwhile.
const dear = 30

// warnDear warns of calls that store many events in a sorted set, unless it was asked for.
func (b *Builder) warnDear(w *Wrapper) {
	warned := map[*Rule]bool{}
	for _, m := range w.Methods {
		for _, l := range m.Limits {
			r := l.Rule
			if l.Cost == nil || warned[r] || !r.Plain().Takes("storage") || r.Storage() != "" {
				continue
			}
			n, exact := int64Of(l.Cost.Const)
			if !exact || n < dear || n > spec.MaxLogCost {
				continue
			}
			warned[r] = true
			packed := algorithm.Rows[algorithm.LogPacked]
			b.Report.Warn(diag.DearCall, r.Place("cost"), "cost: a call that stores %d events takes Redis as long as %d of cost 1: add storage=packed, by which it is as long as %d, or storage=zset if that is meant",
				n, r.Plain().WorkOf(n)/algorithm.Work, packed.WorkOf(n)/algorithm.Work).
				Mark(r.Expr("cost").Tail(0)).Replace(r.End, 0, " storage=packed", "add storage=packed")
		}
	}
}

// warnMeter warns of a log that stores each unit of messages that may cost more than it takes
// at once, unless a log was asked for.
func (b *Builder) warnMeter(w *Wrapper) {
	for _, m := range w.Methods {
		for _, l := range m.Limits {
			r := l.Rule
			if l.Meter == nil || l.Meter.Const != nil || !r.Plain().Stores() || r.Has("algorithm") || !r.Dynamic && r.most() <= spec.MaxLogCost {
				continue
			}
			b.Report.Warn(diag.MeteredLog, r.Place("meter"), "meter: a %s stores each event, so a message that costs more than %d is charged in parts, a request to Redis for each: add algorithm=%s, or algorithm=%s if that is meant",
				r.Algorithm(), spec.MaxLogCost, algorithm.TokenBucket.Row().Name, r.Algorithm()).Mark(r.Expr("meter").Tail(0))
		}
	}
}

// warnLine warns of a wait for which the line of a leaky bucket is too short: the
// last one in a full line has its turn sooner, and whoever comes then is refused at once.
func (b *Builder) warnLine(r *Rule) {
	most := float64(r.most())
	if !r.IsQueue() || r.Burst() == 0 || r.Dynamic || len(r.Adaptive()) > 0 {
		return
	}
	turn := float64(r.Window()) / most
	longest := time.Duration(float64(r.Burst()-1) * turn).Round(time.Microsecond)
	if longest >= r.Wait() {
		return
	}
	waits, meant := "no call waits longer than "+spec.DurationText(longest), "write wait="+longest.String()
	if r.Burst() == 1 {
		waits, meant = "no call waits", "remove wait"
	}
	b.Report.Warn(diag.ShortLine, r.Place("wait"), "wait: %s: the line is full with burst=%d, and who finds it full is refused at once: leave burst out, or raise it to %d for a line of %s, or %s if that is meant",
		waits, r.Burst(), int64(float64(r.Wait())/turn)+1, spec.DurationText(r.Wait()), meant)
}

// warnShared warns of a limit that all callers share though the method is told
// who calls. Beside a limit for each caller it is a cap on all of them.
func (b *Builder) warnShared(w *Wrapper) {
	warned := map[*Rule]bool{}
	for _, m := range w.Methods {
		p := m.callerParam()
		if p == nil || slices.ContainsFunc(m.Limits, (*Limit).dependsOnCall) {
			continue
		}
		for _, l := range m.Limits {
			if warned[l.Rule] || l.isOneLiteral() {
				continue
			}
			warned[l.Rule] = true
			remedy := "write a key that uses #" + p.Source
			if add, _ := expr.FormatOf(p.Type); add != "" {
				remedy = "write key=#" + p.Source
			}
			if !w.allHave(l.Rule, p) {
				remedy = "write key=#" + p.Source + " above each method that has it, or a key that all methods of the limit have"
			}
			b.Report.Warn(diag.NoKey, l.Rule.Pos, "all callers share this limit, its key is the same for each, though %s has the parameter %s: %s, or key=`\"all\"` if that is meant",
				m.Name, p.Source, remedy).Mark(directive.Prefix)
		}
	}
}

// allHave reports whether each method that a rule applies to has a parameter of
// this name, as text if p is.
func (w *Wrapper) allHave(r *Rule, p *expr.Param) bool {
	format := func(p *expr.Param) string { add, _ := expr.FormatOf(p.Type); return add }
	for _, m := range w.Methods {
		if slices.ContainsFunc(m.Limits, func(l *Limit) bool { return l.Rule == r }) &&
			!slices.ContainsFunc(m.Params, func(own *expr.Param) bool { return own.Source == p.Source && (format(own) != "") == (format(p) != "") }) {
			return false
		}
	}
	return true
}

// callerNames are the names that parameters have which say who calls.
var callerNames = strings.Fields("id ip uid user userid username tenant tenantid account accountid client clientid clientip " +
	"customer customerid caller callerid email session sessionid org orgid remoteaddr remoteip apikey")

// callerParam returns the first parameter that by its name says who calls, or
// nil.
func (m *Method) callerParam() *expr.Param {
	i := slices.IndexFunc(m.Params, func(p *expr.Param) bool {
		return slices.Contains(callerNames, strings.ToLower(strings.ReplaceAll(p.Source, "_", "")))
	})
	if i < 0 {
		return nil
	}
	return m.Params[i]
}

// dependsOnCall reports whether a part of the key depends on a parameter.
func (l *Limit) dependsOnCall() bool {
	return slices.ContainsFunc(slices.Concat(l.Parts, l.Share), func(p *expr.KeyPart) bool { return len(p.Expr.Params) > 0 || readsClock(p.Expr) })
}

// isOneLiteral reports whether the key is a text and nothing else, which says
// in so many words that all share it.
func (l *Limit) isOneLiteral() bool {
	if len(l.Parts) != 1 {
		return false
	}
	lit, ok := l.Parts[0].Expr.Node.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

// byteSize writes a number of bytes for people.
func byteSize(n int64) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	if n >= 10_000 {
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d bytes", n)
}
