package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/rategen/rategen/internal/operate"
)

func (s *session) export(ctx context.Context, args []string) error {
	var rules []operate.Rule
	for _, name := range args {
		r, err := s.Rule(name)
		if err != nil {
			return err
		}
		rules = append(rules, r)
	}
	return s.Export(ctx, s.out, rules)
}

func (s *session) importCounts(ctx context.Context, args []string) error {
	file, done, err := s.countsFile(args[0])
	if err != nil {
		return err
	}
	defer done()
	o := operate.ImportOptions{Overwrite: s.overwrite, Skip: s.skip, Try: s.dry, Renames: map[string]operate.Rule{}, Why: s.why}
	for _, text := range s.renames {
		old, name, ok := strings.Cut(text, "=")
		if !ok || old == "" {
			return usagef("-rename %s: write OLD=NEW", text)
		}
		if _, twice := o.Renames[old]; twice {
			return usagef("-rename %s: %s is renamed twice", text, old)
		}
		if o.Renames[old], err = s.Rule(name); err != nil {
			return err
		}
	}
	m, err := s.Import(file, o)
	if err != nil {
		return usagef("%s: %v", args[0], err)
	}
	if !s.dry {
		if err := s.confirm(ctx, "import %v", m); err != nil {
			return err
		}
	}
	m.Who = s.author()
	lines, err := m.Run(ctx)
	if len(lines) > 0 {
		if err := printEach(&s.printer, "RULE IMPORTED KEPT LAPSED BAD", lines, func(l operate.Imported) []string {
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
