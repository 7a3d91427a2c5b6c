package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
)

// libraryScripts is the hidden command of the library with the scripts for shells. These ask
// the command itself, by completionFlag, what may follow.
const (
	libraryScripts = "completion-script"
	completionFlag = "--generate-shell-completion"
)

// bashAlone has the script for bash work without the package bash-completion.
const bashAlone = `declare -F _comp_initialize >/dev/null || declare -F _get_comp_words_by_ref >/dev/null ||
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD; }
`

func (s *session) completion(ctx context.Context, args []string) error {
	if !slices.Contains([]string{"bash", "zsh", "fish"}, args[0]) {
		return usagef("completion %q: write bash, zsh or fish", args[0])
	}
	if args[0] == "bash" {
		_, _ = io.WriteString(s.out, bashAlone)
	}
	return s.flags.Root().Command(libraryScripts).Command(args[0]).Action(ctx, s.flags)
}

func completeCommands(_ context.Context, group *cli.Command) {
	for _, c := range group.Commands {
		if !c.Hidden {
			fmt.Fprintf(group.Root().Writer, "%s:%s\n", c.Name, c.Usage)
		}
	}
}

// complete prints what may follow the words of a command line: flags after a dash, values after
// a flag that takes some, and otherwise arguments.
func (s *session) complete(c command, flags *cli.Command) {
	s.flags = flags
	args := flags.Args().Slice()
	last := strings.Join(args[max(0, len(args)-1):], "")
	name := strings.TrimLeft(last, "-")
	var words []string
	if name == last {
		words = s.argument(c, len(args))
	} else if words = s.values(name); words == nil {
		for _, f := range flags.Flags {
			if flag := f.Names()[0]; strings.HasPrefix(flag, name) && flag != name {
				words = append(words, strings.TrimSuffix(last, name)+flag+":"+strings.ReplaceAll(f.(cli.DocGenerationFlag).GetUsage(), "`", ""))
			}
		}
	}
	for _, word := range words {
		_, _ = fmt.Fprintln(s.out, word)
	}
}

func (s *session) argument(c command, n int) (words []string) {
	args := strings.Fields(c.args)
	if n >= len(args) {
		return nil
	}
	for word := range strings.SplitSeq(strings.Trim(args[n], "[]"), "|") {
		switch word = strings.TrimSuffix(word, "..."); word {
		case "RULE":
			words = append(words, s.completeRules()...)
		case "KEY", "CHANGE", "PREFIX", "FILE":
		default:
			words = append(words, word)
		}
	}
	return words
}

// values returns what the value of a flag may be, or nil if nobody knows.
func (s *session) values(flag string) []string {
	if flag == "context" && s.config.load(s.program, false) == nil {
		return s.config.names()
	}
	return map[string][]string{
		"state": operate.States, "mode": {"enforce", "soft", "shadow"}, "enabled": {"true", "false"}, "until": {"never"}, "o": {"table", "json"},
		"only": {"max", "burst", "window", "mode", "enabled", "block", "allow"},
	}[flag]
}

// completeRules returns the names of the rules, which flags, variables and contexts name.
func (s *session) completeRules() []string {
	for _, f := range s.flags.Flags {
		if f.PostParse() != nil {
			return nil
		}
	}
	if s.rules == "" || s.rules == "-" { // standard input is the shell's
		return nil
	}
	s.Timeout = min(s.Timeout, time.Second)
	s.Rules, _ = s.listed(context.Background())
	return s.Names()
}
