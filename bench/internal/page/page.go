// Package page writes what was measured into pages of the documentation.
package page

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main measures until that ends or the program is interrupted, and writes the text, see [Write]. The
// program of that name ends with exit code 1 if either fails.
func Main(name, file string, measure func(context.Context) ([]byte, error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	text, err := measure(ctx)
	stop()
	if err == nil {
		err = Write(file, text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Write inserts a text into a file, or prints it if the file's name is empty.
func Write(file string, text []byte) error {
	if file != "" {
		return Insert(file, text)
	}
	_, err := os.Stdout.Write(text)
	return err
}

// Insert replaces what stands between the lines "<!-- measured -->" and
// "<!-- /measured -->" of a file.
func Insert(file string, text []byte) error {
	const begin, end = "<!-- measured -->\n", "<!-- /measured -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(page, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no lines %q and %q", file, begin, end)
	}
	page = bytes.Join([][]byte{before, []byte(begin), []byte("\n"), bytes.TrimSpace(text), []byte("\n\n"), []byte(end), after}, nil)
	return os.WriteFile(file, page, 0o644)
}
