package output

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A change is what is to become of a file, ready to be done. The zero value changes nothing.
type change struct {
	root *os.Root // its directory: a symbolic link does not lead out of it
	name string
	temp string   // the new content beside it, or "" to remove the file
	made []string // directories made for it, the inner ones first
}

// prepare writes the new content beside the file, with the mode of the old one.
func (f File) prepare() (c change, status Status, err error) {
	dir := filepath.Dir(f.Path)
	status = Removed
	if f.Content != nil {
		status = Wrote
		c.made = missingDirs(dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			c.undo()
			return change{}, "", cause(err)
		}
	}
	if c.root, err = os.OpenRoot(dir); err != nil {
		c.undo()
		return change{}, "", cause(err)
	}
	c.name = filepath.Base(f.Path)
	// Where nothing can be written, nothing can be removed either.
	c.temp = ".rategen." + rand.Text()[:8]
	before, _ := c.root.ReadFile(c.name)
	err = c.root.WriteFile(c.temp, slices.Concat(prologue(before), f.Content), 0o644)
	if old, oldErr := c.root.Lstat(c.name); err == nil && oldErr == nil && old.Mode().IsRegular() {
		err = c.root.Chmod(c.temp, old.Mode().Perm())
	}
	if err == nil && f.Content == nil {
		err = c.root.Remove(c.temp)
		c.temp = ""
	}
	if err != nil {
		c.undo()
		return change{}, "", cause(err)
	}
	return c, status, nil
}

// apply makes the change.
func (c *change) apply() (err error) {
	if c.root == nil {
		return nil
	}
	if c.temp == "" {
		err = c.root.Remove(c.name)
	} else if err = c.root.Rename(c.temp, c.name); err == nil {
		c.temp, c.made = "", nil
	}
	if err == nil {
		c.root.Close()
		c.root = nil
	}
	return cause(err)
}

// undo removes what was prepared and not applied.
func (c *change) undo() {
	if c.root != nil {
		if c.temp != "" {
			c.root.Remove(c.temp)
		}
		c.root.Close()
		c.root = nil
	}
	for _, dir := range c.made {
		os.Remove(dir) // unless there is something in it
	}
}

// missingDirs returns those of a directory and the ones above it that do not exist.
func missingDirs(dir string) []string {
	var missing []string
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = append(missing, dir)
	}
}

// cause leaves the path of a temporary file out of an error.
func cause(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}
