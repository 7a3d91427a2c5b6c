package directive

import (
	"fmt"
	"strings"

	"github.com/rategen/rategen/generator/internal/diag"
)

// addDefaults adds a //ratelimit:defaults line: what holds for the directives of a
// package that do not say otherwise.
func (src *File) addDefaults(d *Directive, report diag.Func) {
	d.readShared(report)
	src.Defaults = append(src.Defaults, &Policy{File: src, Settings: d.Settings})
}

// AdoptDefaults takes over those defaults of the package that a directive does not
// give itself and that go with what it gives. The defaults' constants are known.
func (s *Settings) AdoptDefaults() {
	if s.defaults == nil {
		return
	}
	from := s.defaults.Settings
	for i := range Options {
		o := &Options[i]
		v, ok := from.values[o.Name]
		// The numbers of a policy are the same wherever it is used.
		if _, given := s.values[o.Name]; !ok || given || o.counts && s.policy != nil {
			continue
		}
		s.values[o.Name] = v
		if !o.appliesTo(s.Algorithm()) {
			delete(s.values, o.Name)
			continue
		}
		if err := s.misfit(); err != nil {
			delete(s.values, o.Name)
			why, _, _ := strings.Cut(err.Error(), ": ") // the rest is the remedy of an error
			s.leftOut = append(s.leftOut, "The package's default "+o.Name+" is left out: "+why+".")
			continue
		}
		s.places[o.Name] = from.places[o.Name]
		s.byDefault = append(s.byDefault, o.Name)
		s.adoptNamed(from, o.Name)
	}
}

// misfit returns why options do not go together, or nil.
func (s *Settings) misfit() error {
	for i := range Options {
		o := &Options[i]
		if _, given := s.values[o.Name]; !given {
			continue
		}
		if !o.appliesTo(s.Algorithm()) {
			return fmt.Errorf("%s has no meaning for %s", o.Name, s.Algorithm())
		}
		if o.fits == nil {
			continue
		}
		if err := o.fits(s); err != nil {
			return err
		}
	}
	return nil
}

// explainDefaults tells what the package's defaults give to a directive, and what they do not.
func (s *Settings) explainDefaults() string {
	all := s.leftOut
	if len(s.byDefault) > 0 {
		all = append([]string{"The package's defaults give it its " + List(s.byDefault, "and") + "."}, all...)
	}
	return strings.Join(all, " ")
}
