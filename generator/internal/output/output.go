// Package output compares generated files with those on disk, writes them and
// removes those whose source is gone. It never touches a file that rategen has not
// written.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A Status is what became of a file, or would become of it.
type Status string

const (
	Wrote     Status = "wrote"     // it was new or had changed
	Unchanged Status = "unchanged" // it was up to date and not touched
	Removed   Status = "removed"   // it was not to be there
	Stale     Status = "stale"     // it has to be written anew or removed
	Missing   Status = "missing"   // it does not exist
)

// A File is a file as it should be: with content, or absent.
type File struct {
	Path    string
	Content []byte // nil: to be removed
}

// Compare returns what has to be done about files.
func Compare(files []File) ([]Status, error) {
	statuses := make([]Status, len(files))
	for i, f := range files {
		var err error
		if statuses[i], err = f.compare(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, cause(err))
		}
	}
	return statuses, nil
}

// compare returns what has to be done about the file.
func (f File) compare() (Status, error) {
	old, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) && f.Content == nil {
		return Unchanged, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Missing, nil
	}
	if err != nil {
		return "", err
	}
	if f.Content != nil && bytes.Equal(bytes.ReplaceAll(old[len(prologue(old)):], []byte("\r\n"), []byte("\n")), f.Content) {
		return Unchanged, nil
	}
	return Stale, nil
}

// Apply makes files as they should be: all of them, or none if one cannot be written. Readers
// see an old file or the new one, never a part of it.
func Apply(files []File) ([]Status, error) {
	statuses, err := Compare(files)
	if err != nil {
		return nil, err
	}
	changes := make([]change, len(files))
	undo := func() {
		for i := range changes {
			changes[i].undo()
		}
	}
	for i, f := range files {
		if statuses[i] == Unchanged {
			continue
		}
		if changes[i], statuses[i], err = f.prepare(); err != nil {
			undo()
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	for i, f := range files {
		if err := changes[i].apply(); err != nil {
			undo()
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return statuses, nil
}
