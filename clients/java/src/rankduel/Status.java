package rankduel;

import java.util.Locale;

/** The result of a report. */
public enum Status {
    /** It counts. */
    RECORDED,
    /** It was stored before: an earlier attempt had arrived. */
    DUPLICATE,
    /** The clicks arrived after a final call or the end of the window, and change nothing. */
    LATE,
    /** It is about a fallback page, and was not sent. */
    IGNORED;

    static Status of(Object name) throws RankduelException {
        for (Status status : values()) {
            if (status.name().toLowerCase(Locale.ROOT).equals(name)) {
                return status;
            }
        }
        throw RankduelException.notRankduel("its status is " + name);
    }
}
