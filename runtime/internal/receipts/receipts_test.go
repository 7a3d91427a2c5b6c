package receipts

import "testing"

// A page of receipts is shared by that many decisions, and each has one bit.
func TestBook(t *testing.T) {
	t.Parallel()
	var b Book
	seen := map[*Page]int{}
	for range 3 * pageSize {
		page, receipt := b.Issue()
		if seen[page]++; !page.Use(receipt) || page.Use(receipt) {
			t.Fatal("a receipt is not used once")
		}
	}
	for _, n := range seen {
		if n != pageSize {
			t.Errorf("%d decisions of a page", n)
		}
	}
}
