package rankduel;

import java.util.Locale;

/** The outcome of a duel, if your own code merges the pages and credits the clicks. */
public enum Outcome {
    /** The left ranker won. */
    LEFT,
    /** The right ranker won. */
    RIGHT,
    /** Neither won. */
    TIE,
    /** There was no click that says anything. */
    NONE;

    String wireName() {
        return name().toLowerCase(Locale.ROOT);
    }
}
