package main

import (
	"path/filepath"
	"testing"

	"github.com/rategen/rategen/internal/testkit/wrapall"
)

// TestEveryInterface wraps every interface of gRPC and of what it needs.
func TestEveryInterface(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	wrapall.Test(t, here, filepath.Join(here, "../.."), "google.golang.org/grpc/...", "google.golang.org/protobuf/...", "golang.org/x/net/...")
}
