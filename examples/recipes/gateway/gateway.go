// Package gateway limits the use of a language model that answers in streams: by requests,
// tokens and money, for each user and for each tenant. A stream ends at the last token that
// is paid.
package gateway

import (
	"context"
	"iter"
)

//go:generate go tool rategen

// A Caller is who asks, as the authentication has found out.
type Caller struct {
	Tenant, User string
	Budget       int64 // of the tenant for a month, in micro-cents
	Share        int64 // which part of it the user may use
}

// A Chunk is a piece of an answer.
type Chunk struct {
	Text   string
	Tokens int64
}

// Model is the service.
type Model interface {
	// Ask has the model answer. An error ends the answer.
	//
	//ratelimit:key=#c.Tenant,#c.User max=20 name=gateway.requests.user
	//ratelimit:key=#c.Tenant max=60 name=gateway.requests
	//ratelimit:key=#c.Tenant max=100_000 algorithm=token-bucket wait=30s cost=tokens(#prompt) meter=#message.Tokens name=gateway.tokens
	//ratelimit:key=#c.Tenant,#c.User window=month max=#c.Share cost=in*tokens(#prompt) meter=out*#message.Tokens reserve=5s fail=local name=gateway.money.user
	//ratelimit:key=#c.Tenant window=month max=#c.Budget cost=in*tokens(#prompt) meter=out*#message.Tokens reserve=5s fail=local name=gateway.money
	Ask(ctx context.Context, c Caller, prompt string) iter.Seq2[Chunk, error]
}

// The provider's prices of a token, in micro-cents: 3 dollars for a million of prompts, and
// 15 of answers.
const (
	in  = 300
	out = 1500
)

// tokens returns how many tokens a prompt has, about: one for four bytes. It is at least 1,
// since a cost of 0 would pass every limit.
func tokens(prompt string) int64 { return 1 + int64(len(prompt)/4) }
