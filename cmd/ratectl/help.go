package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/nearest"
)

// The help that the library prints: of ratectl, and of a command.
const (
	rootHelp = `{{define "row"}}  {{trim (printf "%s %s" (name .) .ArgsUsage)}}	{{.Usage}}
{{end}}ratectl shows and changes the rate limits of running programs.

Usage: ratectl COMMAND [flags] [arguments]

{{range .Commands}}{{if .Hidden}}{{else if .Commands}}{{range .Commands}}{{template "row" .}}{{end}}{{else}}{{template "row" .}}{{end}}{{end}}
ratectl COMMAND -h says more, and lists the flags.

Exit codes:
{{exits}}`
	commandHelp = `Usage: {{.FullName}} [flags]{{with .ArgsUsage}} {{.}}{{end}}

{{wrap .Description 0}}
{{range .VisibleFlagCategories}}
{{or .Name "Flags"}}:
{{range .Flags}}  {{wrap .String 6}}
{{end}}{{end}}`
)

func init() { // the library has these in one place for all programs
	cli.RootCommandHelpTemplate, cli.SubcommandHelpTemplate, cli.CommandHelpTemplate = rootHelp, rootHelp, commandHelp
	cli.HelpFlag = &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Hidden: true, Local: true}
	cli.FlagStringer = described
	cli.HelpPrinter = func(out io.Writer, template string, of any) {
		cli.HelpPrinterCustom(out, template, of, map[string]any{
			"wrapAt": func() int { return 78 },
			"exits":  func() string { return exitCodes("  %d\t%s\n") },
			"name":   func(c *cli.Command) string { return strings.TrimPrefix(c.FullName(), "ratectl ") },
		})
	}
	cli.VersionPrinter = func(c *cli.Command) {
		_, _ = fmt.Fprintf(c.Root().Writer, "ratectl %s, %s\n", c.Root().Version, runtime.Version())
	}
}

var exits = []struct {
	code int
	text string
}{
	{done, "done"},
	{failed, "Redis or the page failed, a check is bad, or overrides are invalid; the hash is unchanged"},
	{wrongUsage, "the command line is wrong: an unknown command, flag, rule or key, an unreadable file"},
	{nothing, "no such key or override, or one that nobody knows"},
	{unconfirmed, "not confirmed"},
	{interrupted, "interrupted; `top` ends so with 0"},
}

// exitCodes returns them for a terminal, or as a table of the documentation.
func exitCodes(format string) (text string) {
	for _, e := range exits {
		text += fmt.Sprintf(format, e.code, e.text)
	}
	return text
}

const aboutKeys = "KEY is the key as it stands in Redis after the prefix, its parts joined by colons, or all of the Redis key; a rule without a key has none. With -parts the parts are arguments of their own, without escapes: an IPv6 address, for instance."

func described(flag cli.Flag) string {
	f := flag.(cli.DocGenerationFlag)
	name, usage := "-"+flag.Names()[0], f.GetUsage()
	if before, rest, is := strings.Cut(usage, "`"); is {
		value, after, _ := strings.Cut(rest, "`")
		name, usage = name+" "+value, before+value+after
	} else if f.TakesValue() {
		name += " " + f.TypeName()
	}
	if value := strings.Trim(f.GetValue(), `"`); !slices.Contains([]string{"", "0", "0s", "false"}, value) {
		usage += " (default " + value + ")"
	}
	return name + "\n" + usage
}

// help prints the help of one command or of all, with markdown the table of the documentation, and with man a page for
// man.
func (s *session) help(_ context.Context, args []string) error {
	of := s.flags.Root()
	for _, name := range args {
		if of != nil {
			of = of.Command(name)
		}
	}
	name := strings.Join(args, " ")
	switch {
	case name == "markdown":
		_, _ = io.WriteString(s.out, markdown(commands()))
	case name == "man":
		_, _ = io.WriteString(s.out, manPage(commands()))
	case name == "" || name == "help":
		cli.HelpPrinter(s.out, rootHelp, s.flags.Root())
	case of == nil || len(of.Commands) > 0:
		return unknownCommand(name)
	default:
		cli.HelpPrinter(s.out, commandHelp, of)
	}
	return nil
}

func unknownCommand(name string) error {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return usagef("unknown command %q%s; ratectl -h lists them", name, nearest.Hint(name, names))
}

// markdown returns the commands as a table, as the documentation has them.
func markdown(all []command) string {
	text := "| command | what it does |\n|---|---|\n"
	for _, c := range all {
		text += fmt.Sprintf("| `%s` | %s |\n", strings.ReplaceAll(c.usage(), "|", `\|`), c.short)
	}
	return text
}

// roff escapes what roff would read as a command.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

func manPage(all []command) string {
	var text strings.Builder
	s := newSession(nil)
	text.WriteString(".TH RATECTL 1\n.SH NAME\nratectl \\- show and change the rate limits of running programs\n" +
		".SH SYNOPSIS\n.B ratectl\nCOMMAND [flags] [arguments]\n")
	list := func(flags []cli.Flag) {
		slices.SortFunc(flags, func(a, b cli.Flag) int { return strings.Compare(a.Names()[0], b.Names()[0]) })
		for _, f := range flags {
			text.WriteString(".TP\n.B " + roff.Replace(f.String()) + "\n")
		}
	}
	for _, c := range all {
		text.WriteString(".SH " + roff.Replace(strings.ToUpper(c.name)+"\nratectl "+c.usage()+": "+c.short+".\n\n"+c.long) + "\n")
		list(s.named(c.flags, ""))
	}
	text.WriteString(".SH FLAGS OF EVERY COMMAND\n")
	list(s.named(shared(readsRules), ""))
	text.WriteString(".SH EXIT STATUS\n" + roff.Replace(exitCodes("%d: %s\n.br\n")) + "\n")
	return text.String()
}
