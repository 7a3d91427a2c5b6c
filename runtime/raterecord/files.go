package raterecord

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// extension ends the names of files.
const extension = ".ratelog"

// segments is how many files the bound of a directory is divided into.
const segments = 8

// plain is a sink that is a writer.
type plain struct{ io.Writer }

func (p plain) open(string, int64) error { return nil }
func (p plain) close() error             { return nil }

func (p plain) write(block []byte) error {
	n, err := p.Write(block)
	if err == nil && n < len(block) {
		err = io.ErrShortWrite
	}
	return err
}

// A directory is a sink of files, one after the other.
type directory struct {
	path    string
	name    string
	max     int64
	number  int
	file    *os.File
	written int64
}

func (d *directory) open(name string, maxBytes int64) error {
	d.name, d.max = name, maxBytes
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	return d.begin()
}

// begin begins a file, and makes room for it.
func (d *directory) begin() error {
	err := d.remove(d.max - d.max/segments)
	d.number++
	path := filepath.Join(d.path, fmt.Sprintf("%s-%06d%s", d.name, d.number, extension))
	var opened error
	d.file, opened = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	d.written = 0
	return errors.Join(err, opened)
}

func (d *directory) write(block []byte) error {
	if d.file != nil && d.written+int64(len(block)) > d.max/segments {
		if err := d.close(); err != nil {
			return err
		}
	}
	if d.file == nil {
		if err := d.begin(); err != nil {
			return err
		}
	}
	n, err := d.file.Write(block)
	d.written += int64(n)
	if err != nil { // what is half written is found by its checksum
		_ = d.close()
	}
	return err
}

func (d *directory) close() error {
	if d.file == nil {
		return nil
	}
	err := d.file.Close()
	d.file = nil
	return err
}

// remove removes the oldest records until what is left has no more than some bytes.
func (d *directory) remove(most int64) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	type old struct {
		name string
		size int64
	}
	var all []old
	sum := int64(0)
	for _, e := range entries { // by their names, which begin with times
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), extension) && info.Mode().IsRegular() {
			all, sum = append(all, old{e.Name(), info.Size()}), sum+info.Size()
		}
	}
	slices.SortStableFunc(all, func(a, b old) int { return strings.Compare(a.name, b.name) })
	var failed error
	for _, o := range all {
		if sum <= most {
			break
		}
		if err := os.Remove(filepath.Join(d.path, o.name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = err
			continue
		}
		sum -= o.size
	}
	return failed
}
