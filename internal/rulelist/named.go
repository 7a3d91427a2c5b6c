package rulelist

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rategen/rategen/runtime/rule"
)

// Named sets the value that has a name; the zero one for an empty name.
func Named[T interface {
	~uint8
	String() string
}](name string, to *T) error {
	for v := range T(16) {
		if v.String() == name {
			*to = v
			return nil
		}
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("this version does not know %q", name)
}

// bucketsOf returns the buckets that a text says.
func bucketsOf(text string) (rule.Buckets, error) {
	coarse, fine, layered := strings.Cut(text, "x")
	n, err := strconv.Atoi(coarse)
	if text == "" {
		return rule.Buckets{}, nil
	}
	if text == "auto" {
		return rule.AdaptiveBuckets(), nil
	}
	if err == nil && !layered {
		return rule.EqualBuckets(n), nil
	}
	m, err2 := strconv.Atoi(fine)
	if err != nil || err2 != nil {
		return rule.Buckets{}, fmt.Errorf("unknown buckets %q", text)
	}
	return rule.LayeredBuckets(n, m), nil
}
