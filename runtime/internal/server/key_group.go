package server

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/internal/plan"
)

// A Group is the keys that start with a prefix and end with a tag.
type Group struct {
	Prefix string
	Tag    Tag
	// Expiry is what a key is given that never expires; 0: nothing.
	Expiry time.Duration
	// Found hears of each key, of one of all groups at a time.
	Found func(Found)
}

// A Found is a key that was found.
type Found struct {
	Key    string
	Text   string // between the prefix and the tag
	Bytes  int64
	Expiry time.Duration // below 0: there is none
	Healed bool          // it was given one
}

// Text returns what a key has between the prefix and the tag, and false for a key of no such
// group.
func (g Group) Text(key string) (string, bool) {
	text, has := strings.CutPrefix(key, g.Prefix)
	if !has {
		return "", false
	}
	return g.Tag.Cut(text)
}

// A Tag is what the keys of a rule end with. The zero Tag is empty.
type Tag struct {
	text   string
	number bool   // and a number
	end    string // and this
}

const digits = "0123456789"

// Add makes the tag fit keys that end with another one of its rule, too: the two differ by
// the window.
func (t *Tag) Add(tag string) {
	if t.text == "" {
		t.text = tag
	} else if tag != t.text && !t.number {
		if rest, is := strings.CutSuffix(tag, plan.BlockTag); is {
			tag, t.end = rest, plan.BlockTag
		}
		t.text, t.number = strings.TrimRight(tag, digits), true
	}
}

// Cut returns a text without the tag, and false if it does not end with that.
func (t Tag) Cut(text string) (string, bool) {
	if t.number {
		var has bool
		if text, has = strings.CutSuffix(text, t.end); !has {
			return "", false
		}
		text = strings.TrimRight(text, digits)
	}
	return strings.CutSuffix(text, t.text)
}

var errNoPrefix = errors.New("without a prefix every key of the database would be given an expiry: " +
	"name a prefix or a namespace, or leave the expiry out")

// sortGroups returns groups in the order in which a key is looked for in them, those with the
// longest prefixes first, and what all their keys start with.
func sortGroups(groups []Group) (ordered []Group, start string, err error) {
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(len(b.Prefix), len(a.Prefix)), cmp.Compare(len(b.Tag.text), len(a.Tag.text)))
	})
	start = groups[0].Prefix
	for _, g := range groups {
		if g.Prefix == "" && g.Expiry > 0 {
			return nil, "", errNoPrefix
		}
		for !strings.HasPrefix(g.Prefix, start) {
			start = start[:len(start)-1]
		}
	}
	return groups, start, nil
}
