package directive

import "github.com/rategen/rategen/generator/internal/diag"

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
		if !o.appliesTo(s.Algorithm()) || !s.fits() {
			delete(s.values, o.Name)
			continue
		}
		s.places[o.Name] = from.places[o.Name]
		s.byDefault = append(s.byDefault, o.Name)
		s.adoptNamed(from, o.Name)
	}
}

// fits reports whether all options go together.
func (s *Settings) fits() bool {
	for i := range Options {
		o := &Options[i]
		if _, given := s.values[o.Name]; given && (!o.appliesTo(s.Algorithm()) || o.fits != nil && o.fits(s) != nil) {
			return false
		}
	}
	return true
}

// explainDefaults tells what the package's defaults give to a directive.
func (s *Settings) explainDefaults() string {
	if len(s.byDefault) == 0 {
		return ""
	}
	return "The package's defaults give it its " + List(s.byDefault, "and") + "."
}
