// Package mcpapi limits the tools of an MCP server, on the official SDK.
package mcpapi

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rategen/rategen/runtime"
)

//go:generate go tool rategen

// A Query is the input of a search.
type Query struct {
	Text string `json:"text"`
}

// Found is the output of a search.
type Found struct {
	Orders []string `json:"orders"`
}

// Tools are handlers of tools.
type Tools interface {
	// Search finds orders.
	//
	//ratelimit:key=#in.Text window=1h max=1 message="one search an hour for a text, try again in {retry_after}"
	Search(ctx context.Context, request *mcp.CallToolRequest, in Query) (*mcp.CallToolResult, Found, error)
}

type tools struct{}

func (tools) Search(context.Context, *mcp.CallToolRequest, Query) (*mcp.CallToolResult, Found, error) {
	return nil, Found{Orders: []string{"order 1"}}, nil
}

// NewServer returns a server whose tools are behind their limits.
func NewServer(limiter *runtime.Limiter) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "orders", Version: "1"}, nil)
	limited := NewRateLimitedTools(tools{}, limiter)
	mcp.AddTool(server, &mcp.Tool{Name: "search", Description: "finds orders"}, limited.Search)
	return server
}
