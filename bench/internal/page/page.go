// Package page writes what was measured into pages of the documentation.
package page

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
)

// Write inserts a text into a file, or prints it if the file's name is empty.
func Write(file string, text []byte) error {
	if file != "" {
		return Insert(file, text)
	}
	_, err := os.Stdout.Write(text)
	return err
}

var measured = regexp.MustCompile("(?s)<!-- measured -->\n.*<!-- /measured -->\n")

// Insert replaces what stands between the lines "<!-- measured -->" and
// "<!-- /measured -->" of a file.
func Insert(file string, text []byte) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	place := measured.FindIndex(page)
	if place == nil {
		return fmt.Errorf("%s has nothing like %q", file, measured)
	}
	text = fmt.Appendf(nil, "<!-- measured -->\n\n%s\n\n<!-- /measured -->\n", bytes.TrimSpace(text))
	return os.WriteFile(file, slices.Replace(page, place[0], place[1], text...), 0o644)
}
