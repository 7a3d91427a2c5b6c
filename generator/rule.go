package generator

import (
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strings"
	"time"
)

const (
	defaultWindow = 60 * time.Second
	defaultMax    = 100
)

// A rule is a directive understood: one limit as it was declared. Its
// expressions are still text; they are checked for each method they apply to.
type rule struct {
	pos     token.Pos
	end     token.Pos // of the directive
	key     []value
	window  time.Duration
	max     *value // nil: defaultMax
	cost    *value // nil: 1
	when    *value // nil: always
	prefix  string // "": made from name
	name    string // "": made from the method's
	message string
	fail    string // "": the limiter's
	except  []value

	algorithm  string
	storage    string        // "": zset
	resolution time.Duration // 0: exact
	buckets    buckets
	burst      int64         // 0: max
	wait       time.Duration // 0: no waiting
	mode       string        // "": enforce
	adaptive   []string      // what the max adapts to

	prefixPos, namePos token.Pos
}

// parseRule understands a directive's options. It reports every option that
// is unknown, repeated, inapplicable or malformed.
func parseRule(d *directive, on place, report reportFunc) *rule {
	r := &rule{pos: d.pos, end: d.end, window: defaultWindow, algorithm: slidingLog, prefixPos: d.pos, namePos: d.pos}
	seen := map[string]bool{}
	for _, o := range d.options {
		i := slices.IndexFunc(optionTable, func(s optionSpec) bool { return s.Name == o.name })
		switch {
		case i < 0:
			hint, near := suggest(o.name, optionNames()), nearest(o.name, optionNames())
			if near == "" {
				hint = ": the options are " + strings.Join(optionNames(), ", ")
			}
			report(o.pos, "unknown option %q%s", o.name, hint).over(o.name).replaceBy(near)
			continue
		case seen[o.name]:
			report(o.pos, "option %q is given twice; remove one, or write a second %s line for a second limit", o.name, directivePrefix).over(o.name)
			continue
		case optionTable[i].only == onInterface && on != onInterface:
			report(o.pos, "option %q belongs to the directive of a whole interface; on a method leave it out", o.name).over(o.name)
			continue
		}
		seen[o.name] = true
		switch o.name {
		case "prefix":
			r.prefixPos = o.value.pos
		case "name":
			r.namePos = o.value.pos
		}
		if err := optionTable[i].parse(r, o.value); err != nil {
			pos, text := o.value.pos, o.value.text
			if p := (*partError)(nil); errors.As(err, &p) {
				pos, text = p.pos, p.over
			}
			d := report(pos, "%s: %s", o.name, err)
			if c := (*choiceError)(nil); o.value.exact {
				d.over(text)
				if errors.As(err, &c) {
					d.replaceBy(nearest(text, c.choices))
				}
			}
		}
	}
	r.checkTogether(d, report)
	return r
}

// checkTogether reports options that do not go with the directive's others.
func (r *rule) checkTogether(d *directive, report reportFunc) {
	for _, o := range d.options {
		i := slices.IndexFunc(optionTable, func(s optionSpec) bool { return s.Name == o.name })
		if i < 0 || !slices.Contains(algorithms, r.algorithm) {
			continue
		}
		if belongs := optionTable[i].algorithms; belongs != nil && !slices.Contains(belongs, r.algorithm) {
			report(o.pos, "option %q has no meaning for %s: leave it out, or write algorithm=%s", o.name, r.algorithm, strings.Join(belongs, " or algorithm=")).over(o.name)
		} else if o.name == "resolution" && r.resolution > r.window {
			report(o.value.pos, "resolution: %s is longer than the window", o.value.text)
		}
	}
}

// A partError is an error in a part of a value.
type partError struct {
	pos  token.Pos
	over string // the part
	error
}

func (e *partError) Unwrap() error { return e.error }

func (r *rule) parseKey(v value) error {
	parts, err := splitParts(v)
	r.key = parts
	return err
}

func (r *rule) parseExcept(v value) error {
	parts, err := splitParts(v)
	r.except = parts
	return err
}

func (r *rule) parseAdaptive(v value) error {
	parts, err := splitParts(v)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := oneOf(part.text, signals...); err != nil {
			return &partError{part.pos, part.text, err}
		}
		if slices.Contains(r.adaptive, part.text) {
			return &partError{part.pos, part.text, fmt.Errorf("%q is given twice; remove one", part.text)}
		}
		r.adaptive = append(r.adaptive, part.text)
	}
	return nil
}

// splitParts cuts a value at its top-level commas.
func splitParts(v value) ([]value, error) {
	var parts []value
	for start := 0; ; {
		end := cut(v.text[start:], ",")
		if end < 0 {
			return nil, fmt.Errorf("a quote or bracket is never closed")
		}
		part := v.text[start : start+end]
		lead := len(part) - len(strings.TrimLeft(part, " \t"))
		text := strings.TrimSpace(part)
		if text == "" {
			return nil, &partError{v.at(start), "", errors.New("a part is empty; remove a comma, or write what is missing")}
		}
		parts = append(parts, value{pos: v.at(start + lead), text: text, exact: v.exact})
		start += end + 1
		if start > len(v.text) {
			return parts, nil
		}
	}
}
