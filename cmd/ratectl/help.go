package main

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rategen/rategen/internal/buildversion"
)

// overview returns the list of commands.
func overview() string {
	var text strings.Builder
	text.WriteString("ratectl shows and changes the rate limits of running programs.\n\nUsage: ratectl COMMAND [flags] [arguments]\n\n")
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, c := range commands {
		fmt.Fprintf(table, "  %s\t%s\n", strings.TrimSpace(c.name+" "+c.args), c.short)
	}
	_ = table.Flush() // a Builder has no errors
	text.WriteString("\nratectl COMMAND -h says more, and lists the flags.\n" + exitCodes)
	return text.String()
}

const exitCodes = `
Exit codes: 0 done; 1 Redis or the page failed, or overrides are invalid; 2 the
command line is wrong; 3 there is no such key or override; 4 not confirmed; 130
interrupted.
`

// help returns the manual of one command.
func (c *command) help() string {
	var text strings.Builder
	long := c.long
	if slices.Contains(c.flags, "parts") {
		long += " " + aboutKeys
	}
	fmt.Fprintf(&text, "Usage: ratectl %s\n\n%s\n", strings.TrimSpace(c.name+" [flags] "+c.args), wrapped(long, 78))
	own, shared := c.split()
	for _, part := range []struct {
		title string
		flags []*flag.Flag
	}{{"Flags", own}, {"Flags of every command", shared}} {
		if len(part.flags) > 0 {
			text.WriteString("\n" + part.title + ":\n")
		}
		for _, f := range part.flags {
			name, usage := flag.UnquoteUsage(f)
			fmt.Fprintf(&text, "  -%s\n      %s\n", strings.TrimSpace(f.Name+" "+name), strings.ReplaceAll(wrapped(usage+defaultOf(f), 72), "\n", "\n      "))
		}
	}
	return text.String()
}

func defaultOf(f *flag.Flag) string {
	switch f.DefValue {
	case "", "0", "0s", "false":
		return ""
	}
	return " (default " + f.DefValue + ")"
}

// split returns the flags that are the command's own, and those that it shares.
func (c *command) split() (own, shared []*flag.Flag) {
	common := make(map[string]bool)
	nowhere := func(string) string { return "" }
	(&command{needs: needRedis | needRules, run: rules}).flagSet(new(options), nowhere).VisitAll(func(f *flag.Flag) { common[f.Name] = true })
	c.flagSet(new(options), nowhere).VisitAll(func(f *flag.Flag) {
		if common[f.Name] {
			shared = append(shared, f)
		} else {
			own = append(own, f)
		}
	})
	return own, shared
}

// wrapped breaks lines at blanks.
func wrapped(text string, width int) string {
	var lines strings.Builder
	length := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case length+1+len(word) > width:
			lines.WriteByte('\n')
			length = 0
		default:
			lines.WriteByte(' ')
			length++
		}
		lines.WriteString(word)
		length += len(word)
	}
	return lines.String()
}

// manual returns the help of one command or of all, with markdown the table of the
// documentation, and with man a page for man.
func manual(args []string) (string, error) {
	if len(args) == 0 {
		return overview(), nil
	}
	switch args[0] {
	case "markdown":
		return markdown(), nil
	case "man":
		return manPage(), nil
	}
	c, _, err := find(args)
	if err != nil {
		return "", err
	}
	if c == nil { // help about help
		return overview(), nil
	}
	return c.help(), nil
}

// markdown returns the commands as a table, as the documentation has them.
func markdown() string {
	var text strings.Builder
	text.WriteString("| command | what it does |\n|---|---|\n")
	for _, c := range commands {
		fmt.Fprintf(&text, "| `%s` | %s |\n", strings.ReplaceAll(strings.TrimSpace(c.name+" "+c.args), "|", `\|`), c.short)
	}
	return text.String()
}

// roff escapes what roff would read as a command.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// manPage returns the help of all commands as a page for man.
func manPage() string {
	var text strings.Builder
	text.WriteString(".TH RATECTL 1\n.SH NAME\nratectl \\- show and change the rate limits of running programs\n" +
		".SH SYNOPSIS\n.B ratectl\nCOMMAND [flags] [arguments]\n")
	list := func(flags []*flag.Flag) {
		for _, f := range flags {
			name, usage := flag.UnquoteUsage(f)
			text.WriteString(".TP\n.B " + roff.Replace(strings.TrimSpace("-"+f.Name+" "+name)+"\n"+usage+defaultOf(f)) + "\n")
		}
	}
	for _, c := range commands {
		own, _ := c.split()
		text.WriteString(".SH " + roff.Replace(strings.ToUpper(c.name)+"\nratectl "+strings.TrimSpace(c.name+" "+c.args)+": "+c.short+".\n\n"+c.long) + "\n")
		list(own)
	}
	_, shared := (&command{needs: needRedis | needRules, run: rules}).split()
	text.WriteString(".SH FLAGS OF EVERY COMMAND\n")
	list(shared)
	text.WriteString(".SH EXIT STATUS\n" + roff.Replace(strings.TrimSpace(exitCodes)) + "\n")
	return text.String()
}

// printVersion returns which ratectl this is.
func printVersion([]string) (string, error) {
	return fmt.Sprintf("ratectl %s, %s\n", buildversion.Version(), runtime.Version()), nil
}
