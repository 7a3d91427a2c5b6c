package ratehttp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// A coded error is one of a framework, which has a status.
type coded struct {
	status int
	error
}

func (c coded) Unwrap() error { return c.error }

// answerJSON answers as most functions for errors do. It panics, as some do, if it cannot write.
func answerJSON(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(map[string]any{"code": status, "error": text}); err != nil {
		panic(err)
	}
}

// The ways in which programs answer errors that they do not know, with the status that a refused client gets
// by the documented line alone.
func TestShapesOfPrograms(t *testing.T) {
	errNotFound := errors.New("not found")
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request, error)
		want   int
	}{
		"every error is 500": {func(w http.ResponseWriter, _ *http.Request, _ error) { answerJSON(w, 500, "internal error") }, 429},
		"the text of the error": {func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}, 429},
		"a switch on sentinels": {func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errNotFound) {
				answerJSON(w, 404, "no such order")
			} else {
				answerJSON(w, 500, "internal error")
			}
		}, 429},
		"a lost error": {func(w http.ResponseWriter, _ *http.Request, err error) {
			if lost := fmt.Errorf("orders: %v", err); !errors.Is(lost, errNotFound) {
				answerJSON(w, 500, lost.Error())
			}
		}, 429},
		"an interface with a status, as in ogen": {func(w http.ResponseWriter, _ *http.Request, err error) {
			code, own := 500, interface{ Code() int }(nil)
			if errors.As(err, &own) {
				code = own.Code()
			}
			answerJSON(w, code, "error")
		}, 429},
		"StatusCode, as twirp and go-kit ask": {func(w http.ResponseWriter, _ *http.Request, err error) {
			code, own := 500, interface{ StatusCode() int }(nil)
			if errors.As(err, &own) {
				code = own.StatusCode()
			}
			answerJSON(w, code, "error")
		}, 429},
		"a type of its own, as in huma": {func(w http.ResponseWriter, _ *http.Request, err error) {
			var own coded
			if !errors.As(err, &own) {
				own = coded{500, err}
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(own.status)
			body, _ := json.Marshal(map[string]any{"title": http.StatusText(own.status), "status": own.status})
			if n, err := w.Write(body); err != nil || n != len(body) {
				panic("error writing response body")
			}
		}, 429},
		"a status of its own, as in go-zero": {func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}, 400},
		"ratehttp.Error before it": {func(w http.ResponseWriter, r *http.Request, err error) {
			if !ratehttp.Error(w, r, err) {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		}, 429},
		"errors in a success, as in GraphQL": {func(w http.ResponseWriter, _ *http.Request, err error) {
			answerJSON(w, 200, err.Error())
		}, 200},
		"a copy of the body": {func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(500)
			r, pipe := io.Pipe()
			go func() { _ = pipe.CloseWithError(json.NewEncoder(pipe).Encode(err.Error())) }()
			if _, copyErr := io.Copy(w, r); copyErr != nil && !errors.Is(copyErr, io.EOF) {
				panic(copyErr)
			}
		}, 429},
		"a log line, and no answer": {func(http.ResponseWriter, *http.Request, error) {}, 429},
		"a panic that is contained": {func(w http.ResponseWriter, r *http.Request, err error) {
			recovering(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(err) })).ServeHTTP(w, r)
		}, 429},
	} {
		limiter := newLimiter()
		h := ratehttp.Middleware()(recovering(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := limiter.Take(r.Context(), full.Limit(nil)); err != nil {
				c.answer(w, r, fmt.Errorf("orders: %w", err))
			}
		})))
		answerOf(h)
		resp := answerOf(h)
		if resp.StatusCode != c.want || (resp.Header.Get("Retry-After") == "60") != (c.want == 429) || resp.Header.Get("RateLimit") == "" {
			t.Errorf("%s: %d %v, want %d", name, resp.StatusCode, resp.Header, c.want)
		}
	}
}
