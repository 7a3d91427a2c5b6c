package generator

import "github.com/rategen/rategen/generator/internal/directive"

// An Option describes one option of a directive, for the manual.
type Option struct {
	// Name is what stands before the equal sign.
	Name string
	// Value is a placeholder for what stands after it.
	Value string
	// Doc says what the option does, in a phrase of Markdown.
	Doc string
	// Default says what holds without the option, in a phrase of Markdown.
	Default string
}

// Options returns the options of a directive in the order of the manual.
func Options() []Option {
	options := make([]Option, len(directive.Options))
	for i, row := range directive.Options {
		options[i] = Option{row.Name, row.Value, row.Doc, row.Default}
	}
	return options
}
