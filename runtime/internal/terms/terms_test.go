package terms

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A page of receipts is shared by that many decisions, and each has one bit.
func TestReceiptBook(t *testing.T) {
	t.Parallel()
	var b ReceiptBook
	seen := map[*ReceiptPage]int{}
	for range 3 * pageSize {
		page, receipt := b.Issue()
		seen[page]++
		if !page.Use(receipt) || page.Use(receipt) {
			t.Fatal("a receipt is not used once")
		}
	}
	for _, n := range seen {
		if n != pageSize {
			t.Errorf("%d decisions of a page", n)
		}
	}
}

// However many use a receipt at once, one of them was the first.
func TestReceiptIsUsedOnce(t *testing.T) {
	t.Parallel()
	var page ReceiptPage
	var first atomic.Int64
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for receipt := range uint16(pageSize) {
				if page.Use(receipt) {
					first.Add(1)
				}
			}
		})
	}
	users.Wait()
	if first.Load() != pageSize {
		t.Errorf("%d of %d receipts had a first use", first.Load(), pageSize)
	}
}
