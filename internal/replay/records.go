package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rategen/rategen/internal/nearest"
	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/internal/spec"
)

// maxKept is how many events of some rules are kept in memory, to be replayed again and again.
const maxKept = 1_000_000

// Records are what has been recorded, to be replayed any number of times.
type Records struct {
	files   *record.Files
	survey  *record.Survey
	maxHeap uint64
	parts   []uint32 // of which part each rule is: no call is limited by rules of two
	only    []uint32 // the part that is replayed; nil: all
	kept    []record.Event
}

// Open reads all of some files once. The error is [ErrNewer], [ErrNone], [ErrEmpty], of reading, or says
// that there is more than can be read together.
func Open(files ...io.ReaderAt) (*Records, error) {
	f, err := record.Open(files...)
	if err != nil {
		return nil, err
	}
	s, err := f.Survey()
	if err != nil {
		return nil, err
	}
	if s.Calls == 0 && f.Damage.Unknown > 0 {
		return nil, ErrNewer
	}
	if len(f.Recordings) == 0 && f.Damage.Skipped+int64(f.Damage.Corrupt+f.Damage.Truncated) > 0 {
		return nil, ErrNone
	}
	if s.Calls == 0 {
		return nil, ErrEmpty
	}
	return &Records{files: f, survey: s, maxHeap: maxHeap, parts: partsOf(f, s)}, nil
}

// partsOf returns of which part each rule is. Rules that stand together in a call, or whose keys start
// alike, are of one.
func partsOf(f *record.Files, s *record.Survey) []uint32 {
	parts := make([]uint32, len(f.Names.Rules))
	first := map[string]uint32{} // by name and by prefix
	for i := range parts {
		parts[i] = uint32(i)
	}
	join := func(a, b uint32) {
		a, b = parts[a], parts[b]
		for i := range parts {
			if parts[i] == b {
				parts[i] = a
			}
		}
	}
	for i, state := range f.Names.Rules {
		for _, as := range []string{"name " + state.Declared.Name, "prefix " + spec.Prefix(state.Rule.Prefix, state.Rule.Name)} {
			if other, is := first[as]; is && parts[other] != parts[i] {
				join(other, uint32(i))
			} else if !is {
				first[as] = uint32(i)
			}
		}
	}
	for pair := range s.Together {
		if parts[pair[0]] != parts[pair[1]] {
			join(pair[0], pair[1])
		}
	}
	return parts
}

// Select returns records of the calls that a rule limits, and of the calls on which those may depend. It
// reads the files once.
func (rs *Records) Select(rule string) (*Records, error) {
	of := *rs
	for i, state := range rs.files.Names.Rules {
		if state.Declared.Name == rule {
			of.only = []uint32{rs.parts[i]}
		}
	}
	if of.only == nil {
		return nil, fmt.Errorf("the records have no call of %q%s", rule, nearest.Hint(rule, rs.Rules()))
	}
	s := *rs.survey
	s.Waited, of.survey = 0, &s
	keeps := true
	err := of.each(func(ev *record.Event) error {
		s.Waited = max(s.Waited, ev.Waited)
		keeps = keeps && len(of.kept) < maxKept
		if keeps {
			of.kept = append(of.kept, *ev)
			of.kept[len(of.kept)-1].Limits = slices.Clone(ev.Limits)
		}
		return nil
	})
	if !keeps {
		of.kept = nil
	}
	return &of, err
}

// each calls visit with the events that are to be replayed.
func (rs *Records) each(visit func(*record.Event) error) error {
	for i := range rs.kept {
		if err := visit(&rs.kept[i]); err != nil {
			return err
		}
	}
	if rs.kept != nil {
		return nil
	}
	return rs.files.Events(func(ev *record.Event) error {
		if len(rs.files.Names.Rules) > len(rs.parts) {
			return errors.New("the files have changed while they were read")
		}
		if len(ev.Limits) == 0 || !rs.has(ev.Limits[0].Rule) {
			return nil
		}
		return visit(ev)
	})
}

// has reports whether a rule is one of the part that is replayed.
func (rs *Records) has(rule uint32) bool { return rs.only == nil || rs.parts[rule] == rs.only[0] }

// Rules returns the names of the rules in the records.
func (rs *Records) Rules() (names []string) {
	for _, s := range rs.files.Names.Rules {
		names = append(names, s.Declared.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
