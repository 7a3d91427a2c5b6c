package runtime

import (
	"sync"
	"sync/atomic"
)

// pageReceipts is how many receipts a page has. A page takes 512 bytes, an
// eighth of a byte for each decision.
const pageReceipts = 4096

// A receiptPage knows which of its receipts were used. Every charged [Decision],
// and each copy of it, refers to one receipt. A page lives as long as any of its
// decisions.
type receiptPage struct {
	used [pageReceipts / 64]atomic.Uint64
}

// use marks a receipt as used, and reports whether it was not.
func (p *receiptPage) use(receipt uint16) bool {
	bit := uint64(1) << (receipt % 64)
	return p.used[receipt/64].Or(bit)&bit == 0
}

// A receiptBook gives each decision a receipt of its own. It is used by one
// goroutine at a time.
type receiptBook struct {
	page *receiptPage
	next uint16 // receipt on the page
}

// issue gives a decision the next receipt.
func (b *receiptBook) issue(d *Decision) {
	if b.page == nil || b.next == pageReceipts {
		b.page, b.next = new(receiptPage), 0
	}
	d.page, d.receipt = b.page, b.next
	b.next++
}

var receiptBooks = sync.Pool{New: func() any { return new(receiptBook) }}

// issueReceipt gives a decision a receipt where the call has no book at hand.
func issueReceipt(d *Decision) {
	b := receiptBooks.Get().(*receiptBook)
	b.issue(d)
	receiptBooks.Put(b)
}
