// Package page writes what was measured into pages of the documentation.
package page

import (
	"bytes"
	"fmt"
	"os"
)

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
