package rankduel

import (
	"context"
	"encoding/json"
	"math"
	"time"
)

// Order is an order, or the cancellation of one: then ID and Cancelled are enough.
type Order struct {
	ID string
	// Unit is that of the pages.
	Unit string
	// At is the time of the order.
	At        time.Time
	Lines     []OrderLine
	Cancelled bool
}

// OrderLine is one product of an order.
type OrderLine struct {
	// Document is the document's id, as in the rankings.
	Document string `json:"document"`
	// Value is the price of one piece, if it is known. All orders have the same currency.
	Value *float64 `json:"value,omitempty"`
	// Quantity is 1 if it is 0.
	Quantity int `json:"quantity,omitempty"`
}

// OrderResult is the result of an order. The status Recorded, Duplicate or Late needs no action.
type OrderResult struct {
	Status Status `json:"status"`
	// Experiments is the number of experiments that have it.
	Experiments int `json:"experiments,omitempty"`
	// Detail is the reason why an order is Conflict or Invalid.
	Detail string `json:"detail,omitempty"`
	// Pointer is the member that is wrong, if one is.
	Pointer string `json:"pointer,omitempty"`
}

const (
	// Conflict: another order was stored under this id.
	Conflict Status = "conflict"
	// Invalid orders are refused.
	Invalid Status = "invalid"
)

// MarshalJSON writes the members that the order has.
func (o Order) MarshalJSON() ([]byte, error) {
	members := map[string]any{"order_id": o.ID}
	if o.Cancelled {
		members["cancelled"] = true
	}
	if o.Unit != "" {
		members["unit"] = o.Unit
	}
	if !o.At.IsZero() {
		members["at"] = o.At
	}
	if o.Lines != nil {
		members["lines"] = o.Lines
	}
	return json.Marshal(members)
}

// ReportOrders sends orders, at most 1,000, to an experiment that orders decide, and returns the
// result of each. Transient failures are repeated like those of ReportClicks; a repeat never counts
// twice.
func (c *Client) ReportOrders(ctx context.Context, orders []Order) ([]OrderResult, error) {
	for _, order := range orders {
		for _, line := range order.Lines {
			if line.Value != nil && (math.IsNaN(*line.Value) || math.IsInf(*line.Value, 0)) {
				return nil, usage("the value of %q in order %q is %v; it must be a finite number", line.Document, order.ID, *line.Value)
			}
		}
	}
	return c.server.orders(ctx, orders, c.options.ReportTime)
}
