// Wiring declares limits, and does not use all of them.
package main

type Store interface { // want `NewRateLimitedStore is called nowhere in the package, and no other can call it, so these limits hold nothing: call it where the Store is made`
	//ratelimit:max=5
	Get() error
}

type Used interface {
	//ratelimit:max=5
	Get() error
}

type Orders struct{}

//ratelimit:key=#id max=5
func (o Orders) Show(id string) error { return nil }

func (o Orders) Plain(id string) error { return handle(o.Show) }

func handle(func(id string) error) error { return nil }

func main() {
	orders := Orders{}
	handle(orders.Show)      // want `Show of Orders is passed on without its limits: pass on that of NewRateLimitedOrders\(…, limiter\), or a function that calls it if that is meant \[not_wired\]`
	handle((&Orders{}).Show) // want `Show of Orders is passed on without its limits`
	handle(orders.Plain)
	handle(NewRateLimitedOrders(orders, nil).Show)
	handle(func(id string) error { return orders.Show(id) })
	_ = NewRateLimitedUsed(nil, nil)
}
