-- name: GetOrder :one
--ratelimit:key=#id window=1h max=1
SELECT id, item FROM orders
WHERE id = $1;

-- name: ListOrders :many
SELECT id, item FROM orders
ORDER BY id;
