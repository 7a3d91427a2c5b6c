package generated

//ratelimit:import "strings"

// The generated file imports strings and declares RateLimitedI.
type I interface {
	//ratelimit:key=strings.ToLower(#id) max=5
	Good(id string) error
	// want +1 `max: a log of 500 events takes about 65 kB of Redis memory for each key`
	//ratelimit:key=#id max=500
	Log(id string) error
	// want +1 `all callers share this limit, its key is the same for each, though All has the parameter id`
	//ratelimit:max=5
	All(id string) error
}

var _ I = RateLimitedI{}
