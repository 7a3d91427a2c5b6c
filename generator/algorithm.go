package generator

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The algorithms, as directives name them.
const (
	slidingLog     = "sliding-log"
	slidingCounter = "sliding-counter"
	fixedWindow    = "fixed-window"
	tokenBucket    = "token-bucket"
	leakyBucket    = "leaky-bucket"
)

var algorithms = []string{slidingLog, slidingCounter, fixedWindow, tokenBucket, leakyBucket}

// latency is the signal that the wrapper measures.
const latency = "latency"

// signals are what a max can adapt to, as directives name it.
var signals = []string{"cpu", "memory", latency}

// Bounds of a rule's numbers; the runtime checks the same ones.
const (
	maxLog     = 1_000_000
	maxCount   = 1_000_000_000_000
	maxBuckets = 1000
	maxLimits  = 8 // on one method
	maxWindow  = 366 * 24 * time.Hour
)

// mostOf returns the largest max of an algorithm.
func mostOf(algorithm string) int64 {
	if algorithm == slidingLog {
		return maxLog
	}
	return maxCount
}

func checkAlgorithm(name string) error {
	if slices.Contains(algorithms, name) {
		return nil
	}
	return &choiceError{fmt.Sprintf("unknown name %q%s: the algorithms are %s", name, suggest(name, algorithms), strings.Join(algorithms, ", ")), algorithms}
}

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

func parseWindow(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err == nil && (d < time.Millisecond || d > maxWindow) {
		err = fmt.Errorf("%s is not between 1ms and 366d", text)
	}
	return d, err
}

// parseResolution leaves the comparison with the window to parseRule.
func parseResolution(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err == nil && (d <= 0 || d%time.Microsecond != 0) {
		err = fmt.Errorf("%s is not a positive number of microseconds", text)
	}
	return d, err
}

func parseWait(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err == nil && (d <= 0 || d > maxWindow) {
		err = fmt.Errorf("%s is not above 0 and up to 366d; leave the option out for calls that do not wait", text)
	}
	return d, err
}

func parseBurst(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > maxCount {
		return 0, fmt.Errorf("%q is not an integer between 1 and %d", text, int64(maxCount))
	}
	return n, nil
}

// buckets says how a sliding counter divides its window; the zero value is the
// runtime's default.
type buckets struct {
	coarse, fine int // fine 0: equal buckets
	adaptive     bool
}

var bucketsText = regexp.MustCompile(`^([0-9]{1,4})(?:x([0-9]{1,4}))?$`)

func parseBuckets(text string) (buckets, error) {
	if text == "auto" {
		return buckets{adaptive: true}, nil
	}
	m := bucketsText.FindStringSubmatch(text)
	if m == nil {
		return buckets{}, fmt.Errorf("%q is not a division of the window: write 60 for equal buckets, 6x10 for layered ones, or auto%s", text, suggest(text, []string{"auto"}))
	}
	coarse, _ := strconv.Atoi(m[1])
	fine, _ := strconv.Atoi(m[2])
	total := coarse
	if m[2] != "" {
		total *= fine
	}
	if total < 1 || total > maxBuckets {
		return buckets{}, fmt.Errorf("%s is %d buckets, not 1 to %d", text, total, maxBuckets)
	}
	return buckets{coarse: coarse, fine: fine}, nil
}
