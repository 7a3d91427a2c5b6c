// Package mcpgoapi limits the tools of an MCP server on mcp-go.
package mcpgoapi

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rategen/rategen/runtime"
)

//go:generate go tool rategen

// A Query is the input of a search.
type Query struct {
	Text string `json:"text"`
}

// Tools are handlers of tools.
type Tools interface {
	// Search finds orders.
	//
	//ratelimit:key=#in.Text window=1h max=1 message="one search an hour for a text, try again in {retry_after}" deny=toolError(#err)
	Search(ctx context.Context, request mcp.CallToolRequest, in Query) (*mcp.CallToolResult, error)
}

// toolError makes a result of a refusal: an error would be one of the protocol.
func toolError(err error) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultError(err.Error()), nil
}

type tools struct{}

func (tools) Search(context.Context, mcp.CallToolRequest, Query) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText("order 1"), nil
}

// NewServer returns a server whose tools are behind their limits.
func NewServer(limiter *runtime.Limiter) *server.MCPServer {
	s := server.NewMCPServer("orders", "1")
	limited := NewRateLimitedTools(tools{}, limiter)
	s.AddTool(mcp.NewTool("search", mcp.WithInputSchema[Query]()), mcp.NewTypedToolHandler(limited.Search))
	return s
}
