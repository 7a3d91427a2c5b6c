package ratehttp

import (
	"iter"
	"strings"

	"github.com/rategen/rategen/runtime/ratefield"
)

// maxAccept is how much of a header Accept is read, in bytes.
const maxAccept = 1024

// prefers reports whether a client would rather read text of a media type than a document of another in JSON, by the
// lines of its header Accept: RFC 9110, section 12.5.1. A client that accepts neither gets the document.
func prefers(accept []string, textType, documentType string) bool {
	var document, text preference
	for mediaType, params := range accepted(accept) {
		quality := ratefield.Quality(params)
		switch mediaType {
		case "*/*":
			document.offer(1, quality)
			text.offer(1, quality)
		case "application/*":
			document.offer(2, quality)
		case "text/*":
			text.offer(2, quality)
		case "text/html":
			if textType == "text/plain" { // which browsers show, as HTML
				text.offer(2, quality)
			}
		case textType:
			text.offer(4, quality)
		case documentType:
			document.offer(4, quality)
		case "application/json":
			document.offer(3, quality)
		}
	}
	return text.quality > document.quality
}

// accepted returns the media types of the lines of a header Accept, each with its parameters.
func accepted(lines []string) iter.Seq2[string, string] {
	return func(yield func(mediaType, params string) bool) {
		read := 0
		for _, line := range lines {
			if read += len(line); read > maxAccept {
				return
			}
			for part := range strings.SplitSeq(line, ",") {
				mediaType, params, _ := strings.Cut(part, ";")
				if !yield(strings.ToLower(strings.Trim(mediaType, " \t")), params) {
					return
				}
			}
		}
	}
}

// A preference is how much a client wants a media type, by the most specific range
// that covers it.
type preference struct {
	specific int
	quality  float64
}

func (p *preference) offer(specific int, quality float64) {
	if specific > p.specific || specific == p.specific && quality > p.quality {
		p.specific, p.quality = specific, quality
	}
}
