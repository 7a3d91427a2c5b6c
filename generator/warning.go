package generator

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// What a log in a sorted set takes in Redis, in bytes an event, as measured
// with MEMORY USAGE: Redis keeps a small set in one piece of memory.
const (
	smallZSet      = 128 // events
	smallZSetEvent = 20
	largeZSetEvent = 130
)

// warnings looks for limits that are correct and perhaps not meant. There is a way
// to say of each that it is, which the manual names with the warning.
func (r *run) warnings(files []*checkedFile) {
	if r.failed {
		return // the limits are not all there
	}
	prefixes := map[string]*limit{}
	for _, f := range files {
		for _, w := range f.wrappers {
			for _, l := range w.limits {
				r.warnPrefix(l, prefixes)
				r.warnLog(l)
			}
			r.warnShared(w)
		}
	}
}

// warnPrefix warns of an explicit prefix that another rule has too, where the
// two cannot be meant as one. Rules of one name are meant so.
func (r *run) warnPrefix(l *limit, seen map[string]*limit) {
	if l.rule.prefix == "" {
		return
	}
	before := seen[l.prefix]
	if before == nil {
		seen[l.prefix] = l
		return
	}
	if before.name == l.name {
		return
	}
	const remedy = "give each its own prefix, or both one name if that is meant"
	place := shortPosition(r.position(before.rule.pos))
	report := func(consequence, what, here, there string) {
		r.warn(l.rule.prefixPos, "prefix %q is also that of %s, %s: its %s is %s, this one's is %s; %s",
			l.prefix, place, consequence, what, there, here, remedy).over(l.rule.prefix)
	}
	switch a, b := l.rule, before.rule; {
	case a.algorithm != b.algorithm:
		report("yet they count apart", "algorithm", a.algorithm, b.algorithm)
	case a.storage != b.storage && (a.storage == "list" || b.storage == "list"):
		report("yet they count apart", "storage", a.storageName(), b.storageName())
	case a.window != b.window:
		report("so they count together", "window", shortDuration(a.window), shortDuration(b.window))
	case a.maxText() != b.maxText():
		report("so they count together", "max", a.maxText(), b.maxText())
	}
}

func (r *rule) storageName() string {
	if r.storage == "" {
		return "zset"
	}
	return r.storage
}

// warnLog warns of a sorted set that gets large, unless it was asked for.
func (r *run) warnLog(l *limit) {
	if l.rule.algorithm != slidingLog || l.rule.storage != "" || l.dynamic {
		return
	}
	n := int64(defaultMax)
	if l.max != nil {
		n, _ = int64Of(l.max.con)
	}
	if n <= smallZSet {
		return
	}
	v := l.rule.max
	r.warn(v.pos, "max: a log of %d events takes about %s of Redis memory for each key, %d bytes an event where up to %d events take %d: add storage=list, or storage=zset if that is meant",
		n, byteSize(n*largeZSetEvent), largeZSetEvent, smallZSet, smallZSetEvent).
		over(v.tail(0)).fix(l.rule.end, 0, " storage=list", "add storage=list")
}

// warnShared warns of a limit that all callers share though the method is told
// who calls. Beside a limit for each caller it is a cap on all of them.
func (r *run) warnShared(w *wrapper) {
	warned := map[*limit]bool{}
	for _, m := range w.methods {
		p := m.callerParam()
		if p == nil || slices.ContainsFunc(m.uses, (*use).dependsOnCall) {
			continue
		}
		for _, u := range m.uses {
			if warned[u.limit] || u.isOneLiteral() {
				continue
			}
			warned[u.limit] = true
			remedy := "write a key that uses #" + p.source
			if add, _ := formatOf(p.typ); add != "" {
				remedy = "write key=#" + p.source
			}
			r.warn(u.limit.rule.pos, "all callers share this limit, its key is the same for each, though %s has the parameter %s: %s, or key=`\"all\"` if that is meant",
				m.name, p.source, remedy).over(directivePrefix)
		}
	}
}

// callerNames are the names that parameters have which say who calls.
var callerNames = set("id ip uid user userid username tenant tenantid account accountid client clientid clientip " +
	"customer customerid caller callerid email session sessionid org orgid remoteaddr remoteip apikey")

// callerParam returns the first parameter that by its name says who calls, or
// nil.
func (m *method) callerParam() *param {
	i := slices.IndexFunc(m.params, func(p *param) bool {
		return callerNames[strings.ToLower(strings.ReplaceAll(p.source, "_", ""))]
	})
	if i < 0 {
		return nil
	}
	return m.params[i]
}

// dependsOnCall reports whether a part of the key depends on a parameter.
func (u *use) dependsOnCall() bool {
	return slices.ContainsFunc(u.parts, func(p *keyPart) bool { return len(p.expr.params) > 0 })
}

// isOneLiteral reports whether the key is a text and nothing else, which says
// in so many words that all share it.
func (u *use) isOneLiteral() bool {
	if len(u.parts) != 1 {
		return false
	}
	lit, ok := u.parts[0].expr.node.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

// byteSize writes a number of bytes for people.
func byteSize(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d bytes", n)
}
