package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/nearest"
)

// cut returns the places of the arguments that are no flags, up to an argument --, and
// what -o says. Which flags there are does not depend on the command here.
func cut(args []string) (words []int, formats []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return words, formats
		case len(arg) < 2 || arg[0] != '-':
			words = append(words, i)
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !has && takesValue(name) && i+1 < len(args) {
			i++
			value = args[i]
		}
		if name == "o" {
			formats = append(formats, value)
		}
	}
	return words, formats
}

// takesValue reports whether the argument after a flag is its value. A flag of one
// name does in all commands or in none.
func takesValue(name string) bool {
	for _, c := range commands {
		if f := c.flagSet(new(options), func(string) string { return "" }).Lookup(name); f != nil {
			boolean, is := f.Value.(interface{ IsBoolFlag() bool })
			return !is || !boolean.IsBoolFlag()
		}
	}
	return false
}

// find returns the command that the arguments name, and the others; nil if help is
// asked for. Flags may stand before the command, too.
func find(args []string) (*command, []string, error) {
	if len(args) == 0 {
		return nil, nil, usagef("name a command; ratectl -h lists them")
	}
	words, _ := cut(args)
	if len(words) == 0 {
		switch help := slices.ContainsFunc(args, func(a string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, a) }); {
		case help:
			return nil, nil, nil
		case slices.Contains([]string{"-version", "--version", "-v"}, args[0]):
			return find([]string{"version"})
		}
		return nil, nil, usagef("name a command; ratectl -h lists them")
	}
	if args[words[0]] == "help" && len(args) == 1 {
		return nil, nil, nil
	}
	for n := min(2, len(words)); n > 0; n-- {
		var name []string
		rest := slices.Clone(args)
		for i := n - 1; i >= 0; i-- {
			name = append([]string{args[words[i]]}, name...)
			rest = slices.Delete(rest, words[i], words[i]+1)
		}
		for _, c := range commands {
			if c.name == strings.Join(name, " ") {
				return c, rest, nil
			}
		}
	}
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	name := args[words[0]]
	if name == "override" && len(words) > 1 {
		name += " " + args[words[1]]
	}
	return nil, nil, usagef("unknown command %q%s; ratectl -h lists them", name, suggest(name, names))
}

// suggest returns a hint at the candidate that is nearest to what was written, or
// nothing if none is near.
func suggest(written string, candidates []string) string {
	if best := nearest.Name(written, candidates); best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ""
}
