package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/progress"
	"github.com/rategen/rategen/internal/testkit/limittest"
)

// An interrupt at a question ends the command, and changes nothing.
func TestConfirmInterrupted(t *testing.T) {
	t.Parallel()
	in, typed := io.Pipe() // nobody types anything
	defer typed.Close()
	var asked bytes.Buffer
	o := newSession(&program{in: in, err: &asked, asks: true})
	ctx, interrupt := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.confirm(ctx, "do it") }()
	interrupt()
	select {
	case err := <-ended:
		if codeOf(err) != unconfirmed {
			t.Errorf("exit code %d, %v", codeOf(err), err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the question goes on")
	}
	if asked.String() != "Do it? [y/N] \n" {
		t.Errorf("asked: %q", asked.String())
	}

	// A yes that comes with the interrupt is none.
	o.in = bytes.NewBufferString("yes\n")
	var f failure
	if err := o.confirm(ctx, "do it"); !errors.As(err, &f) || f.code != unconfirmed {
		t.Errorf("after an interrupt: %v", err)
	}
}

// Nobody can be asked on the null device, and a table that is repeated there would
// never end.
func TestNullIsNoTerminal(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	limittest.OK(t, err)
	defer null.Close()
	if progress.IsTerminal(null) {
		t.Error("the null device is taken for a terminal")
	}
}
