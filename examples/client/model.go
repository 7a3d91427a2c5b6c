package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rategen/rategen/runtime/rateclient"
)

//go:generate go tool rategen

// A Model is the client of a language model. Its provider allows 500 requests and 90,000
// tokens in a minute.
type Model interface {
	// Complete has the model answer a prompt. Tokens is what the answer has cost, or -1 if
	// the provider does not say; maxTokens are reserved for it.
	//
	//ratelimit:rate=500/m storage=packed wait=30s hold=retryAfter(#err)
	//ratelimit:name=client.Model.tokens algorithm=token-bucket rate=90000/m wait=30s cost=#maxTokens settle=#tokens
	Complete(ctx context.Context, prompt string, maxTokens int) (text string, tokens int, err error)
}

// A ProviderError is the error of an SDK.
type ProviderError struct {
	StatusCode int
	Header     http.Header
}

func (e *ProviderError) Error() string { return http.StatusText(e.StatusCode) }

// retryAfter returns for how long nobody is to call the provider: what it has said when
// it has refused a call, or else a second.
func retryAfter(err error) time.Duration {
	failure, ok := errors.AsType[*ProviderError](err)
	if !ok {
		return 0
	}
	answer := rateclient.ReadAnswer(failure.StatusCode, failure.Header, time.Now())
	if !answer.Refused {
		return 0
	}
	return cmp.Or(answer.HoldOff, time.Second)
}
