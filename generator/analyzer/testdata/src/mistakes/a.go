package mistakes

import "context"

type User struct{ Name string }

type I interface {
	// want +1 `blank after the colon: write //ratelimit:key=#id`
	//ratelimit: key=#id
	Blank(id string) error
	// want +1 `this comment is not a directive and limits nothing: write //ratelimit:key=#id`
	//RateLimit:key=#id
	Case(id string) error
	// want +1 `this comment is not a directive and limits nothing: write //ratelimit:key=#id`
	// ratelimit:key=#id
	Apart(id string) error
	// want +1 `unknown option "widnow" \(did you mean "window"\?\)`
	//ratelimit:key=#id widnow=5s
	Option(id string) error
	// want +1 `unknown option "limit" \(did you mean "max"\?\)`
	//ratelimit:key=#id limit=5
	Guess(id string) error
	// want +1 `unknown option "shadow" \(did you mean "mode"\?\)`
	//ratelimit:key=#id shadow=true
	NoFix(id string) error
	// want +1 `this comment is not a directive and limits nothing: write //ratelimit:policy name=api max=5`
	// ratelimit:policy name=api max=5
	Misplaced(id string) error
	// RateLimiter max=5 and so on is prose.
	Prose(id string) error
	// want +1 `unknown option "frobnicate": the options are`
	//ratelimit:key=#id frobnicate=5s
	NoSuggestion(id string) error
	// want +1 `algorithm: unknown name "slidng-log"`
	//ratelimit:key=#id algorithm=slidng-log
	Algorithm(id string) error
	// want +1 `fail: "opne" is none of open, closed, local`
	//ratelimit:key=#id fail=opne
	Choice(id string) error
	// want +1 `adaptive: "memroy" is none of cpu, memory, latency`
	//ratelimit:key=#id adaptive=cpu,memroy
	Adaptive(id string) error
	// want +1 `option "max" has a blank before the equal sign`
	//ratelimit:key=#id max = 5
	Equal(id string) error
	// want +1 `key: method Param has no parameter #idd \(did you mean "#id"\?\)`
	//ratelimit:key=#idd max=5
	Param(ctx context.Context, id string) error
	// want +1 `key: undefined: id \(did you mean #id\?\)`
	//ratelimit:key=id max=5
	Mark(id string) error
	// want +1 `key: #u.Nmae undefined .* \(did you mean "Name"\?\)`
	//ratelimit:key=#u.Nmae max=5
	Field(u User) error
}

// want +2 `a directive on a function limits nothing`
//
//ratelimit:max=5
func f() {}

// want +1 `write //ratelimit:max=5`
//ratelimt:max=5
