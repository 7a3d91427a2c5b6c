package model

import (
	"cmp"
	"strings"

	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/internal/spec"
)

// applyShare checks what a limit is divided among, by which weight and with which headroom.
func (b *Builder) applyShare(l *Limit, m *Method, scope *expr.Scope) {
	r := l.Rule
	for _, v := range r.Share() {
		for _, part := range r.Key() {
			if withoutBlanks(part.Text) == withoutBlanks(v.Text) {
				b.Report.At(v.Pos, "share: %s is a part of the key, so all calls of a key have the same and it divides nothing: leave it out here or in key", v.Text).Mark(v.Tail(0))
			}
		}
		if part := scope.Part("share", v, &m.Signature); part != nil {
			l.Share = append(l.Share, part)
		}
	}
	if v := r.Expr("weight"); v != nil {
		l.Weight = scope.Integer("weight", *v, &m.Signature)
		if l.Weight != nil && l.Weight.Const != nil {
			if n, exact := int64Of(l.Weight.Const); !exact || n < 1 || n > spec.MaxWeight {
				b.Report.At(v.Pos, "weight: %s is not between 1 and %d", l.Weight.Const, spec.MaxWeight).Mark(v.Tail(0))
			}
		}
	}
	b.checkHeadroom(r)
}

func withoutBlanks(text string) string { return strings.Join(strings.Fields(text), "") }

// checkHeadroom reports a headroom that the bucket is too small for. That of calls that bring their max
// is known with them, and lower where it has to be.
func (b *Builder) checkHeadroom(r *Rule) {
	if len(r.Share()) == 0 || r.Dynamic && r.Burst() == 0 {
		return
	}
	burst := r.Burst()
	limit := burst
	if !r.Dynamic {
		burst, limit = r.burst(), r.most()
	}
	most := spec.MostHeadroom(burst, limit)
	if most == 0 {
		b.Report.At(r.Place("share"), "share: a burst of %d cannot be divided: write burst=2 or more", burst)
	} else if cmp.Or(r.Headroom(), 1) > most {
		b.Report.At(r.Place("headroom"), "headroom: %d is above %d, half the burst and no more than max: write a lower one, or a larger burst", r.Headroom(), most)
	}
}
