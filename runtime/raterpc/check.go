package raterpc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Method is one that a server has.
type Method struct {
	// Name is "/package.Service/Method".
	Name string
	// Streams reports whether it sends a stream of messages.
	Streams bool
}

// CheckLimits returns an error that names each limit which no call of a server can ever be charged
// for, with the method that was meant if one is spelt alike: a limit that fits none of its
// methods, or excepts what is none of them, and one [OnSend] that fits none which sends a stream.
func CheckLimits(methods []Method, limits ...MethodLimit) error {
	var wrong []error
	for i := range limits {
		l := &limits[i]
		fit, sends := false, false
		for _, m := range methods {
			if l.matches(m.Name) {
				fit, sends = true, sends || m.Streams
			}
		}
		for _, except := range l.Except {
			if !slices.ContainsFunc(methods, func(m Method) bool { return fits(except, m.Name) }) {
				wrong = append(wrong, fmt.Errorf("the limit of method %q excepts %q, which fits no method of the server%s", l.Method, except, meant(methods, except)))
			}
		}
		if !fit {
			wrong = append(wrong, fmt.Errorf("the limit of method %q fits no method of the server%s", l.Method, meant(methods, l.Method)))
		} else if l.On&OnSend != 0 && !sends {
			wrong = append(wrong, fmt.Errorf("the limit of method %q charges what is sent, and no method that it fits sends a stream: leave OnSend out", l.Method))
		}
	}
	return errors.Join(wrong...)
}

// meant names a method, or all of a service, that is spelt like a pattern: in another case, or in
// another package.
func meant(methods []Method, pattern string) string {
	part := func(name string) string { return strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]) }
	var all []string
	for _, m := range methods {
		all = append(all, m.Name)
		if service, _, ok := splitMethod(m.Name); ok {
			all = append(all, "/"+service+"/*")
		}
	}
	i := slices.IndexFunc(all, func(name string) bool { return strings.EqualFold(name, pattern) })
	if i < 0 {
		i = slices.IndexFunc(all, func(name string) bool { return part(name) == part(pattern) })
	}
	if i < 0 {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", all[i])
}
