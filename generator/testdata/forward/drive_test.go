// Package forward is the frame of TestForward: the interfaces, and for each a
// case and a recorder that implements it, are added to it.
package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A recorder keeps what a method was called with, and returns what it is
// given.
type recorder struct {
	calls int
	got   []any
	give  []reflect.Value
}

func (r *recorder) record(args ...any) {
	r.calls++
	r.got = args
}

// given returns a result.
func given[T any](r *recorder, i int) T {
	v, _ := r.give[i].Interface().(T) // a nil interface
	return v
}

// A wrapping is an interface to test. Its methods in limited admit one call of
// a key.
type wrapping struct {
	name    string
	wrap    func(*recorder, *runtime.Limiter) any
	limited map[string]bool
}

var wrappings []wrapping

func TestForward(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	for _, w := range wrappings {
		t.Run(w.name, func(t *testing.T) {
			rec := &recorder{}
			wrapper := reflect.ValueOf(w.wrap(rec, runtime.New(runtime.NewMemoryStore())))
			for i := range wrapper.NumMethod() {
				name := wrapper.Type().Method(i).Name
				if name == "Unwrap" {
					if got := wrapper.Method(i).Call(nil)[0].Interface(); got == nil {
						t.Errorf("Unwrap returns %v", got)
					}
					continue
				}
				drive(t, name, wrapper.Method(i), rec, w.limited[name])
			}
		})
	}
}

// drive calls a method twice with the same arguments: the first call is passed
// on, and so is the second unless the method is limited.
func drive(t *testing.T, name string, method reflect.Value, rec *recorder, limited bool) {
	s := &sampler{}
	var args []reflect.Value
	for in := range method.Type().Ins() {
		args = append(args, s.sample(in, 3))
	}
	for round := range 2 {
		rec.calls, rec.got, rec.give = 0, nil, nil
		for out := range method.Type().Outs() {
			rec.give = append(rec.give, s.sample(out, 3))
		}
		var results []reflect.Value
		if method.Type().IsVariadic() {
			results = method.CallSlice(args)
		} else {
			results = method.Call(args)
		}
		if limited && round == 1 {
			if rec.calls != 0 {
				t.Errorf("%s: a call over the limit was passed on", name)
			}
			for i, r := range results[:len(results)-1] {
				if !r.IsZero() {
					t.Errorf("%s: result %d of a refused call is %v", name, i, r)
				}
			}
			if err, _ := results[len(results)-1].Interface().(error); !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("%s: a refused call gave the error %v", name, err)
			}
			continue
		}
		if rec.calls != 1 || len(rec.got) != len(args) {
			t.Errorf("%s was called %d times, with %d of %d arguments", name, rec.calls, len(rec.got), len(args))
			continue
		}
		for i, arg := range args {
			if !same(reflect.ValueOf(rec.got[i]), arg) {
				t.Errorf("%s: argument %d was passed on as %v, not %v", name, i, rec.got[i], arg)
			}
		}
		for i, r := range results {
			if !same(r, rec.give[i]) {
				t.Errorf("%s: result %d is %v, not %v", name, i, r, rec.give[i])
			}
		}
	}
}

// same reports whether two values are the same and not only equal: pointers,
// channels, maps, functions and slices must be identical.
func same(a, b reflect.Value) bool {
	for a.IsValid() && a.Kind() == reflect.Interface {
		a = a.Elem()
	}
	for b.IsValid() && b.Kind() == reflect.Interface {
		b = b.Elem()
	}
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Chan, reflect.Map, reflect.Func, reflect.UnsafePointer:
		return a.UnsafePointer() == b.UnsafePointer()
	case reflect.Slice:
		return a.Len() == b.Len() && a.UnsafePointer() == b.UnsafePointer()
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Array:
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

// A sampler makes values no two of which are alike.
type sampler struct{ n int64 }

func (s *sampler) sample(t reflect.Type, depth int) reflect.Value {
	s.n++
	v := reflect.New(t).Elem()
	if depth == 0 && t.Kind() != reflect.Interface {
		return v
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(s.n%2 == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(s.n % 100)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(s.n % 100))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(s.n))
	case reflect.Complex64, reflect.Complex128:
		v.SetComplex(complex(float64(s.n), 1))
	case reflect.String:
		v.SetString(fmt.Sprint("s", s.n))
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(s.sample(t.Elem(), depth-1))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 2, 3))
		v.Index(0).Set(s.sample(t.Elem(), depth-1))
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).Set(s.sample(t.Elem(), depth-1))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(s.sample(t.Key(), depth-1), s.sample(t.Elem(), depth-1))
	case reflect.Chan:
		both := reflect.ChanOf(reflect.BothDir, t.Elem())
		v.Set(reflect.MakeChan(both, 1).Convert(t))
	case reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value { panic("nobody is to call it") }))
	case reflect.Struct:
		for i := range t.NumField() {
			if v.Field(i).CanSet() {
				v.Field(i).Set(s.sample(t.Field(i).Type, depth-1))
			}
		}
	case reflect.Interface:
		for _, candidate := range []any{fmt.Errorf("e%d", s.n), fmt.Sprint("i", s.n), strings.NewReader("r"), context.WithValue(context.Background(), s, s.n), time.Duration(s.n)} {
			if reflect.TypeOf(candidate).Implements(t) {
				v.Set(reflect.ValueOf(candidate))
				break
			}
		}
	}
	return v
}
