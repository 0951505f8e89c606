package rankduel;

/**
 * One result of a page.
 *
 * @param position position in the whole list, from 0; positions on page 2 continue those of page 1
 * @param document the document's id, as in the rankings
 * @param token identifies the slot in feedback, without revealing its ranker; null on a fallback page
 */
public record Slot(int position, String document, String token) {}
