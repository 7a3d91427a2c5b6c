package rateclient

import (
	"testing"

	"github.com/rategen/rategen/internal/testkit/limittest"
)

func TestMain(m *testing.M) { limittest.Run(m) }
