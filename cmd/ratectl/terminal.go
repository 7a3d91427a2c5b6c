package main

import (
	"os"

	"golang.org/x/term"
)

// A console is the terminal that a program was started on.
type console struct{ in, out *os.File }

func (c console) raw() (restore func(), err error) {
	was, err := term.MakeRaw(int(c.in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(c.in.Fd()), was) }, nil
}

func (c console) size() (width, height int) {
	width, height, err := term.GetSize(int(c.out.Fd()))
	if err != nil {
		return 80, 24
	}
	return width, height
}
