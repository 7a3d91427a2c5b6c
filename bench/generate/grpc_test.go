package main

import (
	"path/filepath"
	"testing"

	"github.com/rategen/rategen/internal/testkit/wrapall"
	_ "google.golang.org/grpc" // keeps it in go.mod
)

// TestEveryInterface wraps every interface of gRPC and of what it needs.
func TestEveryInterface(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	wrapall.Test(t, root, filepath.Dir(root), "google.golang.org/grpc/...", "google.golang.org/protobuf/...", "golang.org/x/net/...")
}
