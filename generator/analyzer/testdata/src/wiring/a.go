// Wiring declares limits, and does not use all of them.
package main

import "net/http"

type Store interface { // want `NewRateLimitedStore is called nowhere in the package, and no other can call it, so these limits hold nothing: call it where the Store is made`
	//ratelimit:max=5
	Get() error
}

type Used interface {
	//ratelimit:max=5
	Get() error
}

type Orders struct{}

//ratelimit:max=5
func (o Orders) Show(w http.ResponseWriter, r *http.Request) {}

func (o Orders) Plain(w http.ResponseWriter, r *http.Request) { handle(o.Show) }

func handle(http.HandlerFunc) {}

func main() {
	orders := Orders{}
	handle(orders.Show)      // want `Show of Orders is passed on without its limits: pass on that of NewRateLimitedOrders\(…, limiter\), or a function that calls it if that is meant \[not_wired\]`
	handle((&Orders{}).Show) // want `Show of Orders is passed on without its limits`
	handle(orders.Plain)
	handle(NewRateLimitedOrders(orders, nil).Show)
	handle(func(w http.ResponseWriter, r *http.Request) { orders.Show(w, r) })
	_ = NewRateLimitedUsed(nil, nil)
}
