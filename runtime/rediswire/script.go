package rediswire

import (
	"encoding"
	"strconv"
	"unsafe"
)

// A Script is one execution of a Lua script.
type Script struct {
	// Args are the command: EVALSHA or EVAL, the hash or text, the number of keys, the
	// keys, and what else the script is given. Each is a string, *string, *int64 or an
	// [encoding.BinaryMarshaler] that makes no error. They are the caller's memory, and
	// his again when Execute has returned.
	Args []any
	// Asking has ASKING sent right before, for a server of a cluster that is about to
	// take over a slot.
	Asking bool

	// Numbers is the reply, until the script is executed again.
	Numbers []int64
	// Err is why there is none.
	Err error

	// Own is the client's own, kept from one execution to the next. It is nil at first.
	Own any
}

// FirstKey is the index of the first key in the Args of a script that has one.
const FirstKey = 3

// Text appends the arguments as texts, which stay when the arguments change. Those that
// are no texts share one piece of memory.
func (s *Script) Text(texts []string) []string {
	size := 0
	for _, arg := range s.Args {
		switch arg := arg.(type) {
		case *int64:
			size += digits(*arg)
		case encoding.BinaryMarshaler:
			b, _ := arg.MarshalBinary()
			size += len(b)
		}
	}
	memory := make([]byte, 0, size)
	for _, arg := range s.Args {
		before := len(memory)
		switch arg := arg.(type) {
		case string:
			texts = append(texts, arg)
			continue
		case *string:
			texts = append(texts, *arg)
			continue
		case *int64:
			memory = strconv.AppendInt(memory, *arg, 10)
		case encoding.BinaryMarshaler:
			b, _ := arg.MarshalBinary()
			memory = append(memory, b...)
		}
		texts = append(texts, textOf(memory[before:]))
	}
	return texts
}

// textOf returns bytes that nobody changes any more as a text.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// digits returns how long a number is as a text.
func digits(n int64) int {
	size := 1
	if n < 0 {
		size = 2
	}
	for ; n >= 10 || n <= -10; n /= 10 {
		size++
	}
	return size
}

// A Command is one that is no script of the store's.
type Command struct {
	// Args are its name and arguments.
	Args []string
	// Key is the index in Args of the key that says which server is meant; 0: any is.
	Key int

	// Value is the reply: an int64, a string, or a []any of these and more.
	Value any
	// Err is why there is none. A reply of nil is one.
	Err error
}

// First returns the first error of commands, or nil.
func First(commands []Command) error {
	for i := range commands {
		if err := commands[i].Err; err != nil {
			return err
		}
	}
	return nil
}
