package rankduel;

import java.util.List;

/** Makes the ranking of one ranker. */
@FunctionalInterface
public interface Ranking {
    /** The document ids of the ranker, best first. */
    List<String> of(String ranker) throws Exception;
}
