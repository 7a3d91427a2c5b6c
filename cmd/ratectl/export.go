package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
)

// An exportCommand prints the counts of rules, or of all.
type exportCommand struct{ session }

func (c *exportCommand) about() about {
	return about{
		name: "export", args: "[RULE...]", short: "print the counts of rules, to keep or to move them", needs: judgesKeys, max: -1,
		long: "Prints every key of the rules, or of all, as lines of JSON: what is counted, whether a block is on, and until when. Of all rules it prints the overrides and their history too. The last line says how many there were. Charges that are made meanwhile may be missing. Walks over the database.",
	}
}

func (c *exportCommand) run(ctx context.Context, args []string) error {
	var rules []operate.Rule
	for _, name := range args {
		r, err := c.Rule(name)
		if err != nil {
			return err
		}
		rules = append(rules, r)
	}
	return c.Export(ctx, c.out, rules)
}

// An importCommand puts what export has printed into Redis.
type importCommand struct {
	changing
	overwrite, skip bool
	renames         []string
}

func (c *importCommand) about() about {
	return about{
		name: "import", args: "FILE|-", short: "put exported counts into Redis", needs: judgesKeys, min: 1, max: 1,
		long: "Puts what export has printed into this Redis, in this namespace. Each key expires when it would have. Keys that are there already stay as they are, unless -overwrite. Import before programs count in the new Redis, then restart them: what they hold of leases and refusals is of the old one. " +
			"Overrides that are there already stay as well, and so does a history. Nothing is imported if a line is no line of an export, or not of a rule that counts alike, unless -skip; the error names the lines. A rule that is called otherwise here is named by -rename. Counts that the scripts do not understand are left out and named. Asks for confirmation.",
		flags: append([]cli.Flag{yesNo(&c.overwrite, "overwrite", "replace counts that are there, though they may be newer"), yesNo(&c.skip, "skip", "leave out the lines that do not fit, and name them"), &cli.StringSliceFlag{Name: "rename", Usage: "`OLD=NEW`: what the file says of one rule is of another", Destination: &c.renames, Local: true}, c.yesFlag()}, c.tryFlags()...),
	}
}

func (c *importCommand) run(ctx context.Context, args []string) error {
	file, done, err := c.countsFile(args[0])
	if err != nil {
		return err
	}
	defer done()
	o := operate.ImportOptions{Overwrite: c.overwrite, Skip: c.skip, Try: c.dry, Renames: map[string]operate.Rule{}, Why: c.why}
	for _, text := range c.renames {
		old, name, ok := strings.Cut(text, "=")
		if !ok || old == "" {
			return usagef("-rename %s: write OLD=NEW", text)
		}
		if _, twice := o.Renames[old]; twice {
			return usagef("-rename %s: %s is renamed twice", text, old)
		}
		if o.Renames[old], err = c.Rule(name); err != nil {
			return err
		}
	}
	m, err := c.Import(file, o)
	if err != nil {
		return usagef("%s: %v", args[0], err)
	}
	if !c.dry {
		if err := c.confirm(ctx, "import %v", m); err != nil {
			return err
		}
	}
	m.Who = c.author()
	lines, err := m.Run(ctx)
	if len(lines) > 0 {
		if err := printEach(&c.printer, "RULE IMPORTED KEPT LAPSED BAD", lines, func(l operate.Imported) []string {
			return rowOf(l.Rule, l.Imported, l.Kept, l.Lapsed, l.Bad)
		}); err != nil {
			return err
		}
	}
	return err
}

// countsFile opens a file, or keeps standard input in one: it is read twice.
func (s *session) countsFile(path string) (file *os.File, done func(), err error) {
	if path != "-" {
		if file, err = os.Open(path); err != nil {
			return nil, nil, usagef("%v", err)
		}
		return file, func() { _ = file.Close() }, nil
	}
	if file, err = os.CreateTemp("", "ratectl-import-"); err != nil {
		return nil, nil, err
	}
	done = func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}
	if _, err = io.Copy(file, s.in); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return file, done, nil
}
