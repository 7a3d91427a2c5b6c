package document

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/rule"
)

// Set sets a field of a rule as a document names it, and reports whether a rule has one of that
// name.
func Set(r *rule.Rule, name, value string) (is bool, err error) {
	switch strings.ToLower(name) {
	case "name":
		r.Name = value
	case "source":
		r.Source = value
	case "prefix":
		r.Prefix = value
	case "message":
		r.Message = strings.ReplaceAll(strings.ReplaceAll(value, "_", " "), "{retry after}", "{retry_after}")
	case "zone":
		r.Zone = value
	case "window":
		r.Window, err = Duration(value)
	case "resolution":
		r.Resolution, err = Duration(value)
	case "wait":
		r.Wait, err = Duration(value)
	case "block":
		r.Block, err = Duration(value)
	case "lease":
		r.Lease, err = Duration(value)
	case "reserve":
		r.Reserve, err = Duration(value)
	case "max":
		r.Max, err = strconv.ParseInt(value, 10, 64)
	case "burst":
		r.Burst, err = strconv.ParseInt(value, 10, 64)
	case "headroom":
		r.Headroom, err = strconv.ParseInt(value, 10, 64)
	case "anchor":
		r.Anchor, err = strconv.Atoi(value)
	case "keep":
		var n uint64
		n, err = strconv.ParseUint(value, 10, 8)
		r.Keep = uint8(n)
	case "hold":
		r.Hold = true
	case "outgoing":
		r.Outgoing = true
	case "algorithm":
		r.Algorithm, err = named[rule.Algorithm](value)
	case "storage":
		r.Storage, err = named[rule.Storage](value)
	case "mode":
		r.Mode, err = named[rule.Mode](value)
	case "fail":
		r.Fail, err = named[rule.FailurePolicy](value)
	case "invalid":
		r.Invalid, err = named[rule.InvalidKeyPolicy](value)
	case "debt":
		r.Debt, err = named[rule.Debt](value)
	case "period":
		r.Period, err = named[rule.Period](value)
		r.Algorithm, r.Window = rule.FixedWindow, 0
	case "buckets":
		coarse, fine, layered := strings.Cut(value, "x")
		n, wrong := strconv.Atoi(coarse)
		m, _ := strconv.Atoi(fine)
		if value == "auto" {
			r.Buckets = rule.AdaptiveBuckets()
		} else if layered {
			r.Buckets, err = rule.LayeredBuckets(n, m), wrong
		} else {
			r.Buckets, err = rule.EqualBuckets(n), wrong
		}
	default:
		return false, nil
	}
	return true, err
}

// named returns the value of a name.
func named[T interface {
	~uint8
	fmt.Stringer
}](name string) (v T, err error) {
	for ; v < 32; v++ {
		if v.String() == name {
			return v, nil
		}
	}
	return 0, fmt.Errorf("no %T is named %q", v, name)
}

// Duration is [time.ParseDuration], for which a day is 24h, as in 3d12h.
func Duration(text string) (d time.Duration, err error) {
	days, rest, is := strings.Cut(text, "d")
	if !is {
		return time.ParseDuration(text)
	}
	n, err := strconv.Atoi(days)
	if err == nil && rest != "" {
		d, err = time.ParseDuration(rest)
	}
	if n < 0 || strings.HasPrefix(days, "-") {
		d = -d
	}
	return time.Duration(n)*24*time.Hour + d, err
}
