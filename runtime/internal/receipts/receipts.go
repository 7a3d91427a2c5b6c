// Package receipts records which decisions were settled, with one bit for each decision.
package receipts

import (
	"sync"
	"sync/atomic"
)

// pageSize is how many receipts a page has. A page takes 512 bytes.
const pageSize = 4096

// A Page records which of its receipts were used. Every charged decision, and each copy
// of it, refers to one receipt. A page lives as long as any of its decisions.
type Page struct {
	used [pageSize / 64]atomic.Uint64
}

// Use marks a receipt as used, and reports whether it was not.
func (p *Page) Use(receipt uint16) bool {
	bit := uint64(1) << (receipt % 64)
	return p.used[receipt/64].Or(bit)&bit == 0
}

// A Book gives each decision a receipt of its own. It is used by one goroutine at a
// time. The zero Book is ready for use.
type Book struct {
	page *Page
	next uint16 // receipt on the page
}

// Issue returns the next receipt.
func (b *Book) Issue() (page *Page, receipt uint16) {
	if b.page == nil || b.next == pageSize {
		b.page, b.next = new(Page), 0
	}
	page, receipt = b.page, b.next
	b.next++
	return page, receipt
}

var books = sync.Pool{New: func() any { return new(Book) }}

// Issue returns a receipt where the caller has no book at hand.
func Issue() (page *Page, receipt uint16) {
	b := books.Get().(*Book)
	page, receipt = b.Issue()
	books.Put(b)
	return page, receipt
}
