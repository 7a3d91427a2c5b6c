package employee

import (
	"testing"

	"github.com/rategen/rategen/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
