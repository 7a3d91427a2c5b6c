// Ratectl is the command of those who operate limits: it shows which callers are
// refused, gives a caller its limit back, and changes limits while programs run.
//
//	go install github.com/rategen/rategen/cmd/ratectl@latest
//	rategen list -json ./... > rules.jsonl
//	export RATECTL_REDIS=localhost:6379 RATECTL_RULES=rules.jsonl RATECTL_OVERRIDES=orders:limits
//	ratectl top
//	ratectl inspect orders.Service.Create acme
//
// It speaks to Redis directly. The manual is docs/ratectl.md; ratectl -h lists the
// commands, and ratectl COMMAND -h the flags of one.
//
// Standard output has the answer alone: a table, or with -o json a JSON object for
// each line. Questions, progress and errors go to standard error; progress only
// if that is a terminal.
//
// The exit codes are in one table, which ratectl -h prints.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/term"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/progress"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	logging.Disable() // of go-redis: the command has its error
	p := &program{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv,
		asks: progress.IsTerminal(os.Stdin) && progress.IsTerminal(os.Stderr), shows: progress.IsTerminal(os.Stderr), clears: progress.IsTerminal(os.Stdout),
	}
	if p.clears && progress.IsTerminal(os.Stdin) && os.Getenv("TERM") != "dumb" {
		p.terminal = console{os.Stdin, os.Stdout}
	}
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

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

// The exit codes.
const (
	done        = 0
	failed      = 1
	wrongUsage  = 2
	nothing     = 3
	unconfirmed = 4
	interrupted = 130 // as of a shell
)

type failure struct {
	code int
	text string
}

func (f failure) Error() string { return f.text }

var usagef, nothingf = operate.Wrongf, operate.Nothingf

func codeOf(err error) int {
	own, isOwn := errors.AsType[failure](err)
	of, is := errors.AsType[operate.Failure](err)
	if err == nil {
		return done
	}
	if isOwn {
		return own.code
	}
	if is && of.Nothing {
		return nothing
	}
	if is {
		return wrongUsage
	}
	return failed
}

// A foreign error is none of Redis's.
type foreign struct{ error }

func (f foreign) Unwrap() error { return f.error }
