package sqlcdb

import (
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rategen/rategen/examples/frameworks/refused"
)

// The database expects two queries: the one that is refused never gets there.
func TestRefused(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for id, item := range []string{"order 1", "order 2"} {
		mock.ExpectQuery("SELECT id, item FROM orders").WithArgs(id + 1).
			WillReturnRows(sqlmock.NewRows([]string{"id", "item"}).AddRow(id+1, item))
	}
	refused.HTTP(t, newHandler(New(db), refused.Limiter(t)))
	refused.Unavailable(t, newHandler(New(db), refused.Down(t)))
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}
