// Package output compares generated files with those on disk, writes them and
// removes those whose source is gone. It never touches a file that rategen has not
// written.
package output

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// Compare returns what has to be done about the file.
func (o File) Compare() (Status, error) {
	old, err := os.ReadFile(o.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.Content == nil:
		return Unchanged, nil
	case errors.Is(err, fs.ErrNotExist):
		return Missing, nil
	case err != nil:
		return "", err
	case o.Content != nil && bytes.Equal(bytes.ReplaceAll(old, []byte("\r\n"), []byte("\n")), o.Content):
		return Unchanged, nil
	}
	return Stale, nil
}

// Apply makes the file as it should be. Readers see the old file or the new
// one, never a part of it.
func (o File) Apply() (Status, error) {
	status, err := o.Compare()
	if err != nil || status == Unchanged {
		return status, err
	}
	if o.Content != nil {
		if err := os.MkdirAll(filepath.Dir(o.Path), 0o755); err != nil {
			return "", err
		}
	}
	// A root keeps a symbolic link from leading out of the package.
	root, err := os.OpenRoot(filepath.Dir(o.Path))
	if err != nil {
		return "", err
	}
	defer root.Close()
	name := filepath.Base(o.Path)
	if o.Content == nil {
		return Removed, root.Remove(name)
	}
	temp := "." + name + "." + rand.Text()[:8]
	if err := root.WriteFile(temp, o.Content, 0o644); err != nil {
		return "", err
	}
	if err := root.Rename(temp, name); err != nil {
		root.Remove(temp)
		return "", err
	}
	return Wrote, nil
}
