package main

import (
	"flag"
	"fmt"
	"strings"
)

// completion returns a script that completes commands and flags in a shell.
func completion(args []string) (string, error) {
	switch args[0] {
	case "bash":
		return bashScript(), nil
	case "zsh":
		return "autoload -U +X bashcompinit && bashcompinit\n" + bashScript(), nil
	case "fish":
		return fishScript(), nil
	}
	return "", usagef("completion %q: write bash, zsh or fish", args[0])
}

// flagsOf returns the flags of a command, as -name.
func flagsOf(c *command) (names []string) {
	c.flagSet(new(options), func(string) string { return "" }).VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	return names
}

// nextWords returns what may follow words: commands by their first words.
func nextWords() map[string][]string {
	next := make(map[string][]string)
	for _, c := range commands {
		first, second, two := strings.Cut(c.name, " ")
		if len(next[""]) == 0 || next[""][len(next[""])-1] != first {
			next[""] = append(next[""], first)
		}
		if two {
			next[first] = append(next[first], second)
		} else if strings.Contains(c.args, "|") && !strings.HasPrefix(c.args, "RULE") {
			choices, _, _ := strings.Cut(c.args, " ")
			next[first] = append(next[first], strings.Split(choices, "|")...)
		}
	}
	return next
}

func bashScript() string {
	var text strings.Builder
	text.WriteString("_ratectl() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} words=\n\tcase \"${COMP_WORDS[*]:1:COMP_CWORD-1}\" in\n")
	next := nextWords()
	fmt.Fprintf(&text, "\t'') words=%s ;;\n", quoted(next[""]))
	for _, c := range commands {
		first, _, two := strings.Cut(c.name, " ")
		if words := next[first]; len(words) > 0 {
			fmt.Fprintf(&text, "\t%s) words=%s ;;\n", first, quoted(words))
			next[first] = nil
		}
		pattern := first + "*"
		if two {
			pattern = "'" + c.name + "'*"
		}
		fmt.Fprintf(&text, "\t%s) words=%s ;;\n", pattern, quoted(flagsOf(c)))
	}
	text.WriteString("\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default -F _ratectl ratectl\n")
	return text.String()
}

func quoted(words []string) string { return "'" + strings.Join(words, " ") + "'" }

func fishScript() string {
	var text strings.Builder
	next := nextWords()
	for _, c := range commands {
		first, second, two := strings.Cut(c.name, " ")
		seen := "__fish_seen_subcommand_from " + first
		if two {
			fmt.Fprintf(&text, "complete -c ratectl -n '%s' -a %s -d '%s'\n", seen, second, c.short)
			seen += "; and __fish_seen_subcommand_from " + second
		} else {
			fmt.Fprintf(&text, "complete -c ratectl -n __fish_use_subcommand -f -a %s -d '%s'\n", first, c.short)
			for _, word := range next[first] {
				fmt.Fprintf(&text, "complete -c ratectl -n '%s' -f -a %s\n", seen, word)
			}
		}
		for _, name := range flagsOf(c) {
			fmt.Fprintf(&text, "complete -c ratectl -n '%s' -o %s\n", seen, strings.TrimPrefix(name, "-"))
		}
	}
	text.WriteString("complete -c ratectl -n __fish_use_subcommand -f -a override -d 'list and change overrides'\n")
	return text.String()
}
