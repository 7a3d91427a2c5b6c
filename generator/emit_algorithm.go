package generator

import (
	"strings"

	"github.com/dave/jennifer/jen"
)

// algorithmFields writes the fields of a rule that say how it counts. What is
// the runtime's default anyway is left out.
func (e *emitter) algorithmFields(r *rule, field func(string, jen.Code)) {
	if r.algorithm != slidingLog {
		field("Algorithm", e.runtime(camel(r.algorithm)))
	}
	if r.storage == "list" {
		field("Storage", e.runtime("List"))
	}
	if r.resolution > 0 {
		field("Resolution", e.duration(r.resolution))
	}
	switch b := r.buckets; {
	case b.adaptive:
		field("Buckets", e.runtime("AdaptiveBuckets").Call())
	case b.fine > 0:
		field("Buckets", e.runtime("LayeredBuckets").Call(jen.Lit(b.coarse), jen.Lit(b.fine)))
	case b.coarse > 0:
		field("Buckets", e.runtime("EqualBuckets").Call(jen.Lit(b.coarse)))
	}
	if r.burst > 0 {
		field("Burst", jen.Lit(int(r.burst)))
	}
	if r.wait > 0 {
		field("Wait", e.duration(r.wait))
	}
	if r.mode == "shadow" {
		field("Mode", e.runtime("Shadow"))
	}
}

// scaler returns what the max of a rule adapts by.
func (e *emitter) scaler(r *rule) jen.Code {
	pkg := e.imports.name(adaptivePath)
	var by []jen.Code
	for _, signal := range r.adaptive {
		name := upperFirst(signal)
		if signal == "cpu" {
			name = "CPU"
		}
		by = append(by, jen.Id(pkg).Dot(name))
	}
	return jen.Id(pkg).Dot("To").Call(by...)
}

// camel writes sliding-log as SlidingLog.
func camel(name string) string {
	var text strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		text.WriteString(upperFirst(word))
	}
	return text.String()
}
