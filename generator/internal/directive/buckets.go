package directive

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/rategen/rategen/internal/spec"
)

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
		return buckets{}, fmt.Errorf("%q is not a division of the window: write 60 for equal buckets, 6x10 for layered ones, or auto%s", text, Suggest(text, []string{"auto"}))
	}
	coarse, _ := strconv.Atoi(m[1])
	fine, _ := strconv.Atoi(m[2])
	total := coarse
	if m[2] != "" {
		total *= fine
	}
	if total < 1 || total > spec.MaxBuckets {
		return buckets{}, fmt.Errorf("%s is %d buckets, not 1 to %d", text, total, spec.MaxBuckets)
	}
	return buckets{coarse: coarse, fine: fine}, nil
}

// String returns the buckets as a directive writes them, or "".
func (b buckets) String() string {
	if b.adaptive {
		return "auto"
	}
	if b.coarse == 0 {
		return ""
	}
	if b.fine == 0 {
		return strconv.Itoa(b.coarse)
	}
	return strconv.Itoa(b.coarse) + "x" + strconv.Itoa(b.fine)
}
