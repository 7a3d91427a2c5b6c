package directive

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/spec"
)

// parseDuration reads a Go duration; it may also be whole days, as in 7d.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write one such as 500ms, 10s, 1h30m or 7d", text)
	}
	return d, nil
}

func parseResolution(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err == nil {
		err = spec.CheckResolution(d)
	}
	return d, err
}

func parseLease(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err == nil {
		if err = spec.CheckLease(d); err != nil {
			err = fmt.Errorf("%w; leave the option out if Redis is to decide every call", err)
		}
	}
	return d, err
}
