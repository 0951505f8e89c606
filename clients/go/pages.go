package rankduel

import (
	"encoding/json"
	"math"
	"sort"
	"time"
)

// Slot is one result of a page.
type Slot struct {
	// Position in the whole list, from 0. Positions on page 2 continue those of page 1.
	Position int `json:"position"`
	// Document is the document's id, as in the rankings.
	Document string `json:"document"`
	// Token identifies the slot in feedback, without revealing its ranker. Empty on a fallback page.
	Token string `json:"token"`
}

// Duel is the two rankers to interleave. encoding/json keeps it for another request.
type Duel struct {
	Left  string `json:"left"`
	Right string `json:"right"`
	// ID is sent back with feedback. Empty for a fallback to the control.
	ID string `json:"duel_id"`
	// ExpiresAt is a Unix time in seconds. Feedback after it does not count.
	ExpiresAt float64 `json:"expires_at"`
	// Fallback is the reason for a fallback to the control, or empty: timeout, unreachable,
	// resting, not-rankduel, ranker-failed, or the slug of a problem such as experiment-paused.
	Fallback string `json:"fallback"`
}

// SelfDuel reports whether both are the same ranker. If so, show its ranking alone.
func (d Duel) SelfDuel() bool { return d.Left == d.Right }

// Page is one page of results, and its duel. encoding/json keeps it for another request. Keep it on
// the server: it names the rankers.
type Page struct {
	Duel
	Slots []Slot `json:"slots"`
	// Total is the number of slots of all pages of the list.
	Total int `json:"total"`
	// Informative reports whether clicks on this page can favour one side.
	Informative bool `json:"informative"`
}

// Documents returns the ids to show, best first.
func (p Page) Documents() []string {
	documents := make([]string, len(p.Slots))
	for i, slot := range p.Slots {
		documents[i] = slot.Document
	}
	return documents
}

// Rankings has the document ids of every ranker, best first.
type Rankings map[string][]string

// Search returns the document ids of these rankers together, such as with one request to the search
// engine. Leave one out that failed. Others may be there, too: with the control's, a fallback needs
// no second call.
type Search func(rankers []string) (Rankings, error)

// Pin is a document to show at a position (from 0), independent of the rankings.
type Pin struct {
	Position int    `json:"position"`
	Document string `json:"document"`
}

// Visit says whose page it is, and to what part of the traffic it belongs. Both may be empty.
type Visit struct {
	// Unit is an opaque id of the user or the session, of which the server stores a hash.
	Unit string `json:"unit,omitempty"`
	// Segment is a label of 1 to 32 bytes for the part of the traffic that the page belongs to,
	// such as mobile.
	Segment string `json:"segment,omitempty"`
}

// Window is the part of the list that a page shows.
type Window struct {
	// Length is the number of slots of the page; 0 means 10.
	Length int
	// Offset is the number of slots of the list before the page.
	Offset int
	Pinned []Pin
	Visit
}

func (w Window) length() int {
	if w.Length == 0 {
		return 10
	}
	return w.Length
}

// pageBody is a request for a page: with all rankings, or with the two of a duel.
type pageBody struct {
	DuelID   string    `json:"duel_id,omitempty"`
	Rankings Rankings  `json:"rankings,omitempty"`
	Left     *[]string `json:"left,omitempty"`
	Right    *[]string `json:"right,omitempty"`
	Length   int       `json:"length"`
	Offset   int       `json:"offset"`
	Pinned   []Pin     `json:"pinned,omitempty"`
	Visit
}

func (w Window) body() pageBody {
	return pageBody{Length: w.length(), Offset: w.Offset, Pinned: w.Pinned, Visit: w.Visit}
}

// duelAnswer is the answer of next-duel. Pointers tell an absent member from an empty one.
type duelAnswer struct {
	DuelID    *string    `json:"duel_id"`
	Left      *string    `json:"left"`
	Right     *string    `json:"right"`
	ExpiresAt *time.Time `json:"expires_at"`
}

func (a duelAnswer) duel() (Duel, error) {
	if a.DuelID == nil || a.Left == nil || a.Right == nil || a.ExpiresAt == nil {
		return Duel{}, notRankduel("it lacks a member of a duel")
	}
	return Duel{Left: *a.Left, Right: *a.Right, ID: *a.DuelID, ExpiresAt: seconds(*a.ExpiresAt)}, nil
}

type pageAnswer struct {
	duelAnswer
	Slots       *[]Slot `json:"slots"`
	Total       *int    `json:"total"`
	Informative *bool   `json:"informative"`
}

func (a pageAnswer) page(left, right string) (Page, error) {
	a.Left, a.Right = &left, &right
	duel, err := a.duel()
	if err != nil {
		return Page{}, err
	}
	if a.Slots == nil || a.Total == nil || a.Informative == nil {
		return Page{}, notRankduel("it lacks a member of a page")
	}
	return Page{duel, *a.Slots, *a.Total, *a.Informative}, nil
}

func seconds(at time.Time) float64 {
	return float64(at.UnixMilli()) / 1000
}

// never is an expiry time for fallback pages.
var never = seconds(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))

func controlDuel(control, reason string) Duel {
	return Duel{Left: control, Right: control, ExpiresAt: never, Fallback: reason}
}

// controlPage is the control's ranking without repeats, with the pinned documents at their
// positions.
func controlPage(control string, ranking []string, reason string, window Window) Page {
	pins := map[int]string{}
	shown := map[string]bool{}
	for _, pin := range window.Pinned {
		pins[pin.Position] = pin.Document
		shown[pin.Document] = true
	}
	var documents []string
	for _, document := range ranking {
		if shown[document] {
			continue
		}
		shown[document] = true
		for pin, ok := pins[len(documents)]; ok; pin, ok = pins[len(documents)] {
			delete(pins, len(documents))
			documents = append(documents, pin)
		}
		documents = append(documents, document)
	}
	var rest []int
	for position := range pins {
		rest = append(rest, position)
	}
	sort.Ints(rest)
	for _, position := range rest {
		documents = append(documents, pins[position])
	}
	start := int(math.Max(float64(window.Offset), 0))
	page := Page{Duel: controlDuel(control, reason), Slots: []Slot{}, Total: len(documents)}
	for position := start; position < len(documents) && position < start+window.length(); position++ {
		page.Slots = append(page.Slots, Slot{Position: position, Document: documents[position]})
	}
	return page
}

// Click is one click, by exactly one of its position, its document and its slot.
type Click struct {
	position *int
	document string
	slot     string
	event    string
}

// At is a click on a position, from 0.
func At(position int) Click { return Click{position: &position} }

// On is a click on a document.
func On(document string) Click { return Click{document: document} }

// OnSlot is a click on the slot with this token.
func OnSlot(token string) Click { return Click{slot: token} }

// As gives the click an event such as purchase.
func (c Click) As(event string) Click {
	c.event = event
	return c
}

// MarshalJSON writes the click as the API expects it.
func (c Click) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Position *int   `json:"position,omitempty"`
		Document string `json:"document,omitempty"`
		Slot     string `json:"slot,omitempty"`
		Event    string `json:"event,omitempty"`
	}{c.position, c.document, c.slot, c.event})
}
