// Package algorithm has a row for each way of counting, which all layers read: the generator, the
// rules, the engine, its stores and the commands. A row is data. The script that counts by it is in
// package lua, and its state in this process in package memstate.
//
// To add an algorithm, add its constant and its row. What else it needs is missing when programs
// start, and named then.
package algorithm

import "slices"

// A Trait is what an algorithm does that others do not.
type Trait uint16

const (
	// Drains is of a level that drains: it admits a burst, and owes no more than that.
	Drains Trait = 1 << iota
	// Queues is of a level that calls leave evenly spaced, each at its turn.
	Queues
	// Lends is of permits, which calls have while they run.
	Lends
	// Slides is of windows that end now. A lease makes them longer.
	Slides
	// Resets is of a count that is whole again at once, when its window is over, and not before.
	Resets
	// Merges lets equal calls of a batch be one charge.
	Merges
	// Repeats lets a refusal be repeated from memory.
	Repeats
	// Divides is of a level that tenants share.
	Divides
)

// A Need is what a rule has beside its algorithm's name that takes a row of its own.
type Need uint8

const (
	Packing Need = 1 << iota // its storage is packed
	Layers                   // coarse buckets have fine ones
	Wait                     // calls may wait
	Period                   // its window is a period of the calendar
	Share                    // it is divided among tenants
	Return                   // charges lapse, or what is owed is carried to the next window
	needs
)

// A Row says all of an algorithm but how it counts.
type Row struct {
	// Name is that of rules. Of the rows of a name the first one is plain. It alone has the fields
	// from Most on, which are those of all of them.
	Name string
	// Need is what a rule has that is counted so.
	Need Need
	// Script is the name of its pieces, see [Scripts], and State of what memory holds.
	Script string
	State  State
	// Suffix ends its Redis keys, so that a rule whose algorithm was changed never meets the old
	// state during a rolling deploy. No part of a key has a % that is followed by anything but two
	// hexadecimal digits, so no caller can imitate it.
	Suffix string
	Traits Trait
	// EventWork is the work for Redis, see [Work], of each further event that a charge writes or removes, and
	// EventBytes the memory of one, of up to [Few] of them and of more.
	EventWork  int64
	EventBytes [2]int64
	// Words are what explanations say.
	Words Words

	// Most is the largest max, and MostCost the largest cost of one call.
	Most, MostCost int64
	// Seconds are the window of a rule that names none.
	Seconds int64
	// Debt is what becomes of what calls owe where a rule does not say.
	Debt string
	// Options are those of a directive that only some algorithms take.
	Options []string
	// Lacks are the options that only some do not take, and why.
	Lacks map[string]string
}

// Words are sentences about a limit, without those that are of its options. In them {calls} stands
// for its max, {per} for its window or period, {any} for the windows that hold no more than its max,
// {window} for how long one is, {twice} for two times the max, {lease} for its lease, {period} for a
// sentence about its periods and {keep} for one about counts that are kept.
type Words struct {
	Max, Exact, Refusal, State, Lease string
}

// Row returns the row of an algorithm.
func (a Algorithm) Row() *Row { return &Rows[a] }

// Is reports whether an algorithm has a trait.
func (a Algorithm) Is(t Trait) bool { return Traits[a]&t != 0 }

// Traits are those of the rows, for calls.
var Traits = func() (all [256]Trait) {
	for a := range Rows {
		all[a] = Rows[a].Traits
	}
	return all
}()

// Names are the names of algorithms, in the order of their constants in package rule.
var Names = func() (names []string) {
	for _, r := range Rows {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}()

// unknown is the row of names that are none.
var unknown = Row{Most: MaxCount, MostCost: MaxCount, Seconds: minute}

// RowByName returns the plain row of a name. Of an unknown name it has no name.
func RowByName(name string) *Row {
	for a := range Rows {
		if Rows[a].Name == name {
			return &Rows[a]
		}
	}
	return &unknown
}

// chosen is the algorithm of each name, in the order of Names, with each set of needs.
var chosen = func() [][needs]Algorithm {
	all := make([][needs]Algorithm, len(Names))
	for a, r := range Rows { // those with more needs stand behind those with fewer
		for has := range needs {
			if r.Need&^has == 0 {
				all[slices.Index(Names, r.Name)][has] = Algorithm(a)
			}
		}
	}
	return all
}()

// Choose returns how a rule is counted whose algorithm is one of Names, by its place there. Needs that
// no row of the name has do not count.
func Choose[A ~uint8](of A, has Need) Algorithm {
	if int(of) < len(chosen) {
		return chosen[of][has]
	}
	return LogZSet
}

// RowOf returns the plain row of the name at a place in Names. The row of a place that Names does not
// have is without a name.
func RowOf[A ~uint8](of A) *Row {
	if int(of) < len(chosen) {
		return Choose(of, 0).Row()
	}
	return &unknown
}

// Choose returns how a rule with the name of a row is counted.
func (r *Row) Choose(has Need) Algorithm {
	if i := slices.Index(Names, r.Name); i >= 0 {
		return chosen[i][has]
	}
	return LogZSet
}

// Meets reports whether a row of the name has some needs.
func (r *Row) Meets(all Need) bool { return r.Choose(all).Row().Need&all == all }

// Work is that of a charge for Redis, in quarters of a microsecond on an idle machine, and rather too
// many of them.
const Work = 32

// WorkOf returns the work of a charge at a cost.
func (r *Row) WorkOf(cost int64) int64 { return Work + r.EventWork*(cost-1) }

// Stores reports whether every event is stored, so that a cost is work.
func (r *Row) Stores() bool { return r.MostCost < r.Most }

// Is reports whether a row has a trait.
func (r *Row) Is(t Trait) bool { return r.Traits&t != 0 }

// Takers returns the names of the algorithms that an option is of, or nil if it is of all.
func Takers(option string) (names []string) {
	for a := range Rows {
		if slices.Contains(Rows[a].Options, option) {
			names = append(names, Rows[a].Name)
		}
	}
	return names
}

// Takes reports whether an option is of the rows of a name.
func (r *Row) Takes(option string) bool {
	names := Takers(option)
	return names == nil || slices.Contains(names, r.Name)
}
